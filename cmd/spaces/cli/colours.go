package cli

import (
	"fmt"

	"github.com/fatih/color"
)

func newColours(on bool) colours {
	if !on {
		plain := fmt.Sprint
		return colours{plain, plain, plain, plain, plain, plain, plain}
	}
	paint := func(attributes ...color.Attribute) func(...any) string {
		c := color.New(attributes...)
		// The library looks at the process's own standard output; we know better.
		c.EnableColor()
		return c.SprintFunc()
	}
	return colours{
		gained:   paint(color.FgGreen),
		lost:     paint(color.FgRed),
		changed:  paint(color.FgYellow),
		replaced: paint(color.FgMagenta),
		refused:  paint(color.FgRed, color.Bold),
		faint:    paint(color.Faint),
		title:    paint(color.Bold),
	}
}
