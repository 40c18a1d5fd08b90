package cli

import (
	"fmt"
	"slices"
	"strings"

	"spaces/cmd/spaces/picture"
)

// region is the last lines of a terminal, which are drawn over again and again while what
// is printed above them stays. The cursor waits at the end of the last of them.
//
// A library would take the whole screen, or a goroutine and the terminal's settings with
// it; these lines need neither.
type region struct {
	lines   []string // that stand there
	columns int      // of the terminal as they were drawn
}

// frame is what to write to print something above the region and to draw it anew, in one
// piece and over what stands there, so that nothing flickers. Without lines the region is
// gone; where nothing has changed, nothing is written.
func (r *region) frame(above string, lines []string, columns int) string {
	if above == "" && columns == r.columns && slices.Equal(lines, r.lines) {
		return ""
	}
	var b strings.Builder
	b.WriteString(r.back(columns))
	if above != "" || len(lines) == 0 {
		if len(r.lines) > 0 {
			b.WriteString(clearBelow)
		}
		b.WriteString(above)
	}
	for i, line := range lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(line + clearLine)
	}
	if len(lines) > 0 {
		b.WriteString(clearBelow)
	}
	r.lines, r.columns = lines, columns
	return b.String()
}

// What clears a terminal from its cursor on.
const (
	clearLine  = "\x1b[K"
	clearBelow = "\x1b[J"
)

// back goes to where the region begins. A terminal that has become narrower since has
// broken the lines, each into as many as it needed.
func (r *region) back(columns int) string {
	if len(r.lines) == 0 {
		return ""
	}
	rows := 0
	for _, line := range r.lines {
		rows += max(1, (lineWidth(line)+columns-1)/columns)
	}
	if rows == 1 {
		return "\r"
	}
	return fmt.Sprintf("\r\x1b[%dA", rows-1)
}

// lineWidth is how many columns a painted line takes.
func lineWidth(line string) int { return picture.Cells(withoutColours(line)) }

// fitted is a text of at most so many columns, its end left out.
func fitted(s string, columns int) string {
	if picture.Cells(s) <= columns {
		return s
	}
	var b strings.Builder
	room := columns - 1
	for _, r := range s {
		if room -= picture.Cells(string(r)); room < 0 {
			break
		}
		b.WriteRune(r)
	}
	if columns > 0 {
		b.WriteRune('…')
	}
	return b.String()
}
