package cli

import (
	"fmt"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"spaces/schema"
)

// patch is the unified diff of a file's edit. Lines that may hold a secret are no part of
// it; where it can't be told without them, it is empty.
func patch(name string, before, after []byte) string {
	text := string(diff.Diff("a/"+name, before, "b/"+name, after))
	head, body, _ := strings.Cut(text, "@@ ")
	h := hunks{secretBefore: schema.Secret(before, name), secretAfter: schema.Secret(after, name)}
	for line := range strings.Lines("@@ " + body) {
		if !h.take(line) {
			return ""
		}
	}
	h.end()
	return head + h.out.String()
}

// hunks copies a diff and leaves out lines of context that may hold a secret, so that a
// hunk may become several.
type hunks struct {
	secretBefore, secretAfter map[int]bool

	out           strings.Builder
	lines         []string
	before, after int // the next lines
	from, to      int // where the hunk begins
	gone, come    int // how many lines it has of each
	changes       bool
}

// take is false for a change of a line that may hold a secret.
func (h *hunks) take(line string) bool {
	switch line[0] {
	case '@':
		h.end()
		var gone, come int
		if _, err := fmt.Sscanf(line, "@@ -%d,%d +%d,%d @@", &h.before, &gone, &h.after, &come); err != nil {
			return false
		}
		// A side without lines counts from the line before.
		if gone == 0 {
			h.before++
		}
		if come == 0 {
			h.after++
		}
		h.begin()
		return true
	case '\\':
		h.lines = append(h.lines, line)
		return true
	case ' ':
		h.before, h.after = h.before+1, h.after+1
		if h.secretBefore[h.before-1] || h.secretAfter[h.after-1] {
			h.end()
			h.begin()
			return true
		}
		h.gone, h.come = h.gone+1, h.come+1
	case '-':
		h.before, h.gone, h.changes = h.before+1, h.gone+1, true
		if h.secretBefore[h.before-1] {
			return false
		}
	case '+':
		h.after, h.come, h.changes = h.after+1, h.come+1, true
		if h.secretAfter[h.after-1] {
			return false
		}
	}
	h.lines = append(h.lines, line)
	return true
}

func (h *hunks) begin() {
	h.from, h.to, h.gone, h.come = h.before, h.after, 0, 0
	h.lines, h.changes = nil, false
}

func (h *hunks) end() {
	if !h.changes {
		return
	}
	if h.gone == 0 {
		h.from--
	}
	if h.come == 0 {
		h.to--
	}
	fmt.Fprintf(&h.out, "@@ -%d,%d +%d,%d @@\n%s", h.from, h.gone, h.to, h.come, strings.Join(h.lines, ""))
	h.changes = false
}
