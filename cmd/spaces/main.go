// Command spaces runs programs in containers that reach exactly what files say they do.
package main

import (
	"os"
	"runtime/debug"

	"spaces/cmd/spaces/cli"
)

func main() {
	if os.Getenv("GOGC") == "" {
		// Most commands end before they have made much garbage: collecting half as often
		// makes a plan of hundreds of spaces a sixth faster and takes some MB more.
		debug.SetGCPercent(200)
	}
	os.Exit(cli.Main(cli.System()))
}
