// Command chaos mends what a dead run left behind: see `chaos --help`.
package main

import (
	"os"

	"fencepost.dev/cli"
)

func main() { os.Exit(cli.Chaos(os.Args[1:], os.Stdout, os.Stderr)) }
