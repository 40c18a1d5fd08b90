package places

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"spaces/reconcile"
)

// GuardsFile is where the data root remembers what was protected when the project was
// last applied.
func (r DataRoot) GuardsFile() string { return filepath.Join(r.Part(PartState), "protected.json") }

// guardsFormat is the version of that file.
const guardsFormat = 1

type guardsRecord struct {
	FormatVersion int               `json:"format_version"`
	Protected     []reconcile.Guard `json:"protected"`
}

// Guards are what was protected then; none before the first apply. A file that can't be
// read is an error: without it, what it protects would go without a word.
func (r DataRoot) Guards() ([]reconcile.Guard, error) {
	b, err := os.ReadFile(r.GuardsFile())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("cannot read what is protected: %w", err)
	}
	var record guardsRecord
	if err := json.Unmarshal(b, &record); err != nil || record.FormatVersion != guardsFormat {
		return nil, unfit(r.GuardsFile(), "it doesn't say what is protected, as this program writes it",
			"Remove it, and apply the files: they say what is protected from then on.")
	}
	return record.Protected, nil
}

// SetGuards remembers what is protected.
func (r DataRoot) SetGuards(guards []reconcile.Guard) error {
	if err := ReplaceFile(r.GuardsFile(), 0o600, func(w *bufio.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(guardsRecord{guardsFormat, append([]reconcile.Guard{}, guards...)})
	}); err != nil {
		return fmt.Errorf("cannot remember what is protected: %w", err)
	}
	return nil
}
