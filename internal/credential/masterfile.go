package credential

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// masterFile is the name of the master key's file in the data directory.
const masterFile = "master.key"

// LoadMaster reads the master key from master.key in dir, which must exist, and creates it when it is not there: 32 random
// bytes, readable by its owner alone, on the disk before LoadMaster returns. A file of another size, or one that others may
// read, is an error that says what to do; it is never replaced, since everything handed out hangs on it. Several processes
// may call it at once and get the same key.
func LoadMaster(dir string) (*Master, error) {
	path := filepath.Join(dir, masterFile)
	master, err := readMaster(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return master, err
	}
	if err := createMaster(dir, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("creating the master key: %w", err)
	}
	return readMaster(path)
}

// ReadMaster reads a master key from a file of any name, which holds 32 bytes and may be read by its owner alone, as one that
// [LoadMaster] made does. It makes none.
func ReadMaster(path string) (*Master, error) { return readMaster(path) }

func readMaster(path string) (*Master, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the master key: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("reading the master key: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		return nil, fmt.Errorf("the master key %s may be read by others (mode %04o): run chmod 600 on it, and replace it if somebody did",
			path, info.Mode().Perm())
	}
	if !info.Mode().IsRegular() || info.Size() != masterBytes {
		return nil, fmt.Errorf("the master key %s must be a file of %d bytes, but has %d: restore it from a backup, "+
			"or delete it to start with a new one, which ends every session key, voucher and URL handed out",
			path, masterBytes, info.Size())
	}
	var secret [masterBytes]byte
	if _, err := file.ReadAt(secret[:], 0); err != nil {
		return nil, fmt.Errorf("reading the master key: %w", err)
	}
	return NewMaster(secret), nil
}

// createMaster writes the key under another name first and then links it, so that no crash and no second process ever sees
// half a key: a link fails if the name is taken.
func createMaster(dir, path string) (err error) {
	draft, err := os.CreateTemp(dir, masterFile+".*") // O_EXCL, mode 0600
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(draft.Name())) }()
	var secret [masterBytes]byte
	_, _ = rand.Read(secret[:]) // never fails: the process ends when the system has no randomness
	_, err = draft.Write(secret[:])
	if err = errors.Join(err, draft.Sync(), draft.Close()); err != nil {
		return err
	}
	if err := os.Link(draft.Name(), path); err != nil {
		return fmt.Errorf("%w (the data directory must be on a file system with hard links, or the key given by the environment)", err)
	}
	return syncDirectory(dir)
}

// syncDirectory makes a new name in dir durable. Windows has no such call and needs none.
func syncDirectory(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	opened, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(opened.Sync(), opened.Close())
}
