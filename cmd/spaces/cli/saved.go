package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"spaces/reconcile"
)

// maxSaved bounds what is read of a kept plan, in bytes: there is room for the first apply
// of some thousands of spaces. What is no plan may be as long as its disk, or have no end.
const maxSaved = 64 << 20

// leastEntry is what any entry of a plan's lists takes, in bytes. Lists of next to
// nothing would take many times their file's size in memory.
const leastEntry = 32

// savedPlan reads a plan that was kept.
func (a *app) savedPlan(name string) (*reconcile.Record, error) {
	const fix = "Name a file that `spaces plan --out` wrote."
	path := a.path(name)
	// Whether it is a file is asked first: to open a pipe waits for whoever writes it.
	switch info, err := os.Stat(path); {
	case err != nil:
		return nil, usage(fix, "Cannot read the plan %s: %v.", name, bare(err))
	case !info.Mode().IsRegular():
		return nil, usage(fix, "%s is no file.", name)
	case info.Size() > maxSaved:
		return nil, usage(fix, "%s holds no plan: it has more than %d MiB.", name, maxSaved>>20)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, usage(fix, "Cannot read the plan %s: %v.", name, bare(err))
	}
	defer f.Close()
	r, err := decodePlan(io.LimitReader(f, maxSaved))
	var version *otherFormatError
	switch {
	case errors.As(err, &version):
		return nil, refuse(reconcile.CodePlanStale, "Plan again with this program.",
			"%s has a plan of format %d; this program reads format %d.", name, version.format, reconcile.FormatVersion)
	case err != nil:
		return nil, usage(fix, "%s holds no plan: %v.", name, err)
	}
	return r, nil
}

// otherFormatError is a plan of a format that isn't read here.
type otherFormatError struct{ format int }

func (e *otherFormatError) Error() string { return fmt.Sprintf("format %d", e.format) }

// decodePlan reads a plan's record. A name that stands twice, text that is no UTF-8 and
// anything behind the plan are refused: what one program shows of them, another may not.
// Names that aren't known, of any spelling, are a later release's.
func decodePlan(from io.Reader) (*reconcile.Record, error) {
	b, err := io.ReadAll(from)
	if err != nil {
		return nil, err
	}
	if err := weigh(b); err != nil {
		return nil, explained(err)
	}
	// The format comes first: what else is wrong with another one isn't this program's to say.
	var format struct {
		Version *int `json:"format_version"`
	}
	if err := json.Unmarshal(b, &format); err != nil {
		return nil, explained(err)
	}
	switch {
	case format.Version == nil:
		return nil, errors.New("it has no format_version")
	case *format.Version != reconcile.FormatVersion:
		return nil, &otherFormatError{*format.Version}
	}
	var r reconcile.Record
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, explained(err)
	}
	for _, i := range r.Items {
		if _, err := stepOf(i.Step); err != nil {
			return nil, err
		}
	}
	return &r, nil
}

// weigh refuses what is no JSON, and lists of more entries than a plan of that size has.
func weigh(b []byte) error {
	d := jsontext.NewDecoder(bytes.NewReader(b))
	entries := 0
	for {
		list, _ := d.StackIndex(d.StackDepth())
		token, err := d.ReadToken()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case list == '[' && token.Kind() != '"' && token.Kind() != ']':
			if entries++; entries > len(b)/leastEntry+1 {
				return errors.New("its lists hold more than a plan's do")
			}
		}
	}
}

// explained says what is wrong with JSON and where, without quoting it.
func explained(err error) error {
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		return fmt.Errorf("at byte %d, %w", syntax.ByteOffset, syntax.Err)
	}
	var meaning *json.SemanticError
	if errors.As(err, &meaning) {
		return fmt.Errorf("at byte %d, a %s can't stand for what is read there", meaning.ByteOffset, meaning.JSONKind)
	}
	return err
}
