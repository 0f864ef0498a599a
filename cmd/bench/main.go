// Command bench runs Fencepost's scenarios: see `bench --help`.
package main

import (
	"os"

	"fencepost.dev/cli"
)

func main() { os.Exit(cli.Bench(os.Args[1:], os.Stdout, os.Stderr)) }
