package cli

import (
	"fmt"
	"strings"

	"spaces/cmd/spaces/picture"
)

// region is the last lines of a terminal, which are drawn over again and again while what
// is printed above them stays. The cursor waits at the end of the last of them.
//
// A library would take the whole screen, or a goroutine and the terminal's settings with
// it; these lines need neither.
type region struct {
	widths []int // of the lines that stand there
}

// frame is what to write to print something above the region and to draw it anew, in one
// piece, so that nothing flickers. Without lines the region is gone.
func (r *region) frame(above string, lines []string, columns int) string {
	var b strings.Builder
	b.WriteString(r.erase(columns))
	b.WriteString(above)
	r.widths = r.widths[:0]
	for i, line := range lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(line)
		r.widths = append(r.widths, picture.Cells(withoutColours(line)))
	}
	return b.String()
}

// erase goes back to where the region began and clears from there. A terminal that has
// become narrower since has broken the lines, each into as many as it needed.
func (r *region) erase(columns int) string {
	if len(r.widths) == 0 {
		return ""
	}
	rows := 0
	for _, w := range r.widths {
		rows += max(1, (w+columns-1)/columns)
	}
	up := ""
	if rows > 1 {
		up = fmt.Sprintf("\x1b[%dA", rows-1)
	}
	return "\r" + up + "\x1b[J"
}

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
