package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rouse-dev/rouse/internal/adminapi"
	"github.com/rouse-dev/rouse/internal/config"
)

// administers adds to a command what every command needs that talks to the core on this machine, and runs it with a client.
func (p *program) administers(cmd *cobra.Command, run func(ctx context.Context, client *adminapi.Client, args []string) error) *cobra.Command {
	var data string
	config.BindData(cmd.Flags(), &data)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		client, err := p.administration(cmd, data)
		if err != nil {
			return err
		}
		defer client.Close()
		return run(cmd.Context(), client, args)
	}
	return cmd
}

// administration is the client of the core on the data directory that a command's settings name.
func (p *program) administration(cmd *cobra.Command, data string) (*adminapi.Client, error) {
	data, err := p.directory(cmd, data)
	if err != nil {
		return nil, err
	}
	return adminapi.NewClient(data), nil
}

// directory is the data directory that a command's settings name.
func (p *program) directory(cmd *cobra.Command, data string) (string, error) {
	if err := p.resolve(cmd.Flags()); err != nil {
		return "", err
	}
	if flag := cmd.Flags().Lookup("data"); flag != nil {
		data = flag.Value.String()
	}
	return p.dataOr(data)
}

// dataOr is the data directory that was named, else the customary one.
func (p *program) dataOr(named string) (string, error) {
	if named != "" {
		return named, nil
	}
	return config.DefaultData(p.lookup)
}

// onlyApp is the app that was named, else the only one there is.
func onlyApp(ctx context.Context, client *adminapi.Client, named string) (string, error) {
	if named != "" {
		return named, nil
	}
	apps, err := client.Apps(ctx)
	if err != nil {
		return "", err
	}
	switch len(apps) {
	case 0:
		return "", errors.New("this core has no app yet: make one with `rouse app create ID`")
	case 1:
		return apps[0].ID, nil
	}
	ids := make([]string, len(apps))
	for i, app := range apps {
		ids[i] = app.ID
	}
	return "", fmt.Errorf("this core has %d apps: say which with --app: %s", len(apps), strings.Join(ids, ", "))
}
