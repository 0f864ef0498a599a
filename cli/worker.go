package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"fencepost.dev/harness"
)

// tokenVariable admits an agent: it is never in argv, where other users could read it.
const tokenVariable = "FENCEPOST_TOKEN"

func workerCommand() *cobra.Command {
	var join, name string
	c := &cobra.Command{
		Use:   "worker --join URL",
		Short: "Run workers on this machine for a coordinator elsewhere",
		Long: `Joins a run that was started with bench run --listen ADDRESS --remote N, carries out its assignments in processes of their
own, and ends with it. The token that the coordinator shows is taken from $` + tokenVariable + `.`,
		Example: "  FENCEPOST_TOKEN=… bench worker --join nats://10.0.0.5:4222",
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			token := os.Getenv(tokenVariable)
			switch {
			case join == "":
				return errors.New("bench worker wants --join URL, the address that bench run --listen shows")
			case token == "":
				return fmt.Errorf("bench worker wants the coordinator's token in $%s", tokenVariable)
			}
			err := harness.Join(c.Context(), join, token, name)
			if c.Context().Err() != nil {
				return status(exitInterrupted)
			}
			return err
		},
	}
	c.Flags().StringVar(&join, "join", "", "`URL` of the coordinator, such as nats://10.0.0.5:4222")
	c.Flags().StringVar(&name, "name", "", "how the run calls this machine's agent; without it, the host's name and process id")
	return c
}
