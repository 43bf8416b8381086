package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/spf13/pflag"

	"github.com/rouse-dev/rouse/internal/postgres"
)

// variablePrefix begins the environment variables that are settings.
const variablePrefix = "ROUSE_"

// Variable is the name of a setting in the environment.
func Variable(setting string) string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(setting, "-", "_"))
}

// An Environment looks a variable up, as [os.LookupEnv] does.
type Environment func(name string) (value string, ok bool)

// Resolve gives every setting of flags that the command line did not set the value of its ROUSE_* variable, else that of the
// configuration file. An empty variable counts as absent.
//
// The file is the one named by path, else by ROUSE_CONFIG, else rouse.toml in the user's or the system's configuration
// directory if there is one; a ROUSE_CONFIG that is set and empty means no file. A key in it that is no setting is an error
// that names the key; settings that flags does not have are left alone, so that every command can read the one file.
//
// A password on the command line is an error: everybody on the machine could read it.
func Resolve(flags *pflag.FlagSet, env Environment, path string) error {
	if err := CheckCommandLine(flags); err != nil {
		return err
	}
	file, err := readFile(path, env)
	if err != nil {
		return err
	}
	var failed error
	flags.VisitAll(func(f *pflag.Flag) {
		if failed != nil || f.Changed || !isSetting(f.Name) {
			return
		}
		if value, _ := env(Variable(f.Name)); value != "" {
			if err := flags.Set(f.Name, value); err != nil {
				failed = fmt.Errorf("%s: %w", Variable(f.Name), err)
			}
		} else if value, ok := file.values[f.Name]; ok {
			if err := flags.Set(f.Name, value); err != nil {
				failed = fmt.Errorf("%s: %w", file.path, err)
			}
		}
	})
	return failed
}

// CheckCommandLine refuses a database's password among flags as the command line set them. [Resolve] does so too.
func CheckCommandLine(flags *pflag.FlagSet) error {
	if f := flags.Lookup("database"); f != nil && f.Changed && postgres.HasPassword(f.Value.String()) {
		return errors.New("database: a password on the command line can be read by everybody on this machine: give the address in " +
			"ROUSE_DATABASE or the configuration file, or the password in PGPASSWORD or ~/.pgpass")
	}
	return nil
}

// settingNames are the names of all settings.
var settingNames = func() (names []string) {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	new(Settings).Bind(flags)
	flags.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}()

func isSetting(name string) bool { return slices.Contains(settingNames, name) }

// A file is a configuration file that was read; the zero value is none.
type file struct {
	path   string
	values map[string]string // as a flag takes them
}

func readFile(path string, env Environment) (file, error) {
	demanded := path != ""
	if !demanded {
		path, demanded = env("ROUSE_CONFIG")
	}
	if demanded && path == "" {
		return file{}, nil
	}
	if !demanded {
		if path = customFile(); path == "" {
			return file{}, nil
		}
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return file{}, fmt.Errorf("reading the configuration: %w", err)
	}
	return parseFile(path, content)
}

// customFile is the first configuration file there is in the customary places; empty when there is none.
func customFile() string {
	var directories []string
	if own, err := os.UserConfigDir(); err == nil {
		directories = append(directories, filepath.Join(own, "rouse"))
	}
	if runtime.GOOS != "windows" {
		directories = append(directories, "/etc/rouse")
	}
	for _, directory := range directories {
		path := filepath.Join(directory, "rouse.toml")
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			return path
		}
	}
	return ""
}

func parseFile(path string, content []byte) (file, error) {
	var values map[string]any
	if _, err := toml.Decode(string(content), &values); err != nil {
		return file{}, fmt.Errorf("%s: %w", path, err)
	}
	read := file{path: path, values: map[string]string{}}
	for name, value := range values {
		if !isSetting(name) {
			return file{}, fmt.Errorf("%s: there is no setting %q; there are %s", path, name, strings.Join(settingNames, ", "))
		}
		text, ok := flagText(value)
		if !ok {
			return file{}, fmt.Errorf("%s: %s: must be a string, a number, true, false or a list of strings", path, name)
		}
		read.values[name] = text
	}
	return read, nil
}

// flagText writes a value of TOML as a flag takes it.
func flagText(value any) (text string, ok bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case int64, bool:
		return fmt.Sprint(v), true
	case []any:
		parts := make([]string, len(v))
		for i, part := range v {
			if parts[i], ok = part.(string); !ok {
				return "", false
			}
		}
		return strings.Join(parts, ","), true
	}
	return "", false
}
