package events

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A FileStore keeps a file for each key in a directory of its own. A file is
// written beside its place, synced and renamed, so that a crash leaves the old
// value or the new one. Directories and files are readable by their owner only.
type FileStore struct {
	root string
}

// unfinished ends the names of files that are being written.
const unfinished = ".new"

// NewFileStore makes the directory if it is not there. Nothing else may use it.
func NewFileStore(directory string) (*FileStore, error) {
	root := filepath.Clean(directory)
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, fmt.Errorf("events: making a store: %w", err)
	}
	return &FileStore{root: root}, nil
}

// path is where a key is. A key that leads elsewhere is refused.
func (s *FileStore) path(key string) (string, error) {
	if !filepath.IsLocal(filepath.FromSlash(key)) || strings.HasSuffix(key, unfinished) {
		return "", fmt.Errorf("events: %q is no key of a store", key)
	}
	return filepath.Join(s.root, filepath.FromSlash(key)), nil
}

// Put is as in [Store].
func (s *FileStore) Put(_ context.Context, key string, value []byte) error {
	path, err := s.path(key)
	if err != nil {
		return err
	}
	if err := s.put(path, value); err != nil {
		return fmt.Errorf("events: storing: %w", err)
	}
	return nil
}

func (s *FileStore) put(path string, value []byte) error {
	directory := filepath.Dir(path)
	if err := s.makeDirectory(directory); err != nil {
		return err
	}
	file, err := os.CreateTemp(directory, filepath.Base(path)+".*"+unfinished)
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // there is none once it was renamed
	if _, err := file.Write(value); err != nil {
		file.Close()
		return err
	}
	if err := file.Sync(); err != nil {
		file.Close()
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return err
	}
	return syncDirectory(directory)
}

// makeDirectory makes a directory under the root, durably.
func (s *FileStore) makeDirectory(directory string) error {
	if _, err := os.Stat(directory); err == nil {
		return nil
	}
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return err
	}
	for directory != s.root {
		directory = filepath.Dir(directory)
		if err := syncDirectory(directory); err != nil {
			return err
		}
	}
	return nil
}

// Delete is as in [Store]. After a crash the key may be there again.
func (s *FileStore) Delete(_ context.Context, key string) error {
	path, err := s.path(key)
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("events: storing: %w", err)
	}
	return nil
}

// List is as in [Store]. What a crash left unfinished is passed over.
func (s *FileStore) List(_ context.Context, prefix string) (map[string][]byte, error) {
	found := map[string][]byte{}
	from := s.root
	if at := strings.LastIndexByte(prefix, '/'); at >= 0 {
		path, err := s.path(prefix[:at])
		if err != nil {
			return nil, err
		}
		from = path
	}
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // nothing there yet, or removed meanwhile
		}
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(s.root, path)
		if err != nil {
			return err
		}
		key := filepath.ToSlash(relative)
		if !strings.HasPrefix(key, prefix) || strings.HasSuffix(key, unfinished) {
			return nil
		}
		value, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		found[key] = value
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("events: reading a store: %w", err)
	}
	return found, nil
}
