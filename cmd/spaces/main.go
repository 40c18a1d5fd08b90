// Command spaces runs programs in containers that reach exactly what files say they do.
package main

import (
	"os"

	"spaces/cmd/spaces/cli"
)

func main() { os.Exit(cli.Main(cli.System())) }
