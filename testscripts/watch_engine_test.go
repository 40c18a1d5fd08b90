//go:build engine

package testscripts

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// seenKey is how far a script has looked into what its watch says.
type seenKey struct{}

// sees waits until the file "said" has more that matches, after all that was seen before:
// testscript keeps what a command in the background prints back until that ends.
func sees(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: sees REGEXP")
	}
	wanted, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	seen := ts.Value(seenKey{}).(*int)
	const patience = time.Minute
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		said, err := os.ReadFile(ts.MkAbs("said"))
		if err != nil && !os.IsNotExist(err) {
			ts.Fatalf("%v", err)
		}
		news := said[min(*seen, len(said)):]
		if at := wanted.FindIndex(news); at != nil {
			*seen += at[1]
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("nothing matches %q in what was said since:\n%s", args[0], news)
		}
	}
}

// saves saves a file again and again, by turns in place and by a rename over it. What is
// NUMBER in the template is the number of the save.
func saves(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: saves N TEMPLATE FILE")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	template, file := ts.ReadFile(args[1]), ts.MkAbs(args[2])
	beside := filepath.Join(filepath.Dir(file), ".saved")
	pause := time.NewTicker(time.Second / time.Duration(n))
	defer pause.Stop()
	for i := range n {
		text := []byte(strings.ReplaceAll(template, "NUMBER", strconv.Itoa(i+1)))
		if i%2 == 0 {
			ts.Check(os.WriteFile(file, text, 0o644))
		} else {
			ts.Check(os.WriteFile(beside, text, 0o644))
			ts.Check(os.Rename(beside, file))
		}
		<-pause.C
	}
}
