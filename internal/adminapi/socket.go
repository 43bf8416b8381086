package adminapi

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
)

// socketName is the name of the socket in the data directory.
const socketName = "admin.sock"

// maxSocketPath is the longest path of a Unix socket that every system takes: macOS has 104 bytes with the zero at the end.
const maxSocketPath = 103

// Socket is the path of the administration socket in a data directory.
func Socket(data string) string { return filepath.Join(data, socketName) }

// Listen opens the administration socket in a data directory, for its owner alone. A socket that is there is replaced: only
// who holds the directory's database may call Listen. Closing the listener removes the socket.
func Listen(data string) (net.Listener, error) {
	path := Socket(data)
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("the administration socket %s has a path of %d bytes, and %d is the most: choose a shorter --data",
			path, len(path), maxSocketPath)
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("the administration socket: %w", err)
	case info.Mode()&(fs.ModeSocket|fs.ModeIrregular) == 0: // Windows has sockets as irregular files
		return nil, fmt.Errorf("%s is there and is not a socket: move it away", path)
	default:
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("removing the last core's administration socket: %w", err)
		}
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("the administration socket: %w", err)
	}
	// Until here the directory's mode alone guards it.
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("making the administration socket private: %w", err), listener.Close())
	}
	return listener, nil
}
