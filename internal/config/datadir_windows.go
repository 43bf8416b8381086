package config

import (
	"fmt"
	"io/fs"

	"golang.org/x/sys/windows"
)

// isPrivate leaves an existing directory to whoever made it: modes say nothing on Windows, and under %LocalAppData% a
// directory is its user's by inheritance.
func isPrivate(fs.FileInfo) bool { return true }

// makePrivate leaves the directory, and what will be in it, to this user, the system and its administrators.
func makePrivate(path string) error {
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return fmt.Errorf("making the data directory private: who am I: %w", err)
	}
	descriptor, err := windows.SecurityDescriptorFromString(
		"D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;FA;;;" + user.User.Sid.String() + ")")
	if err != nil {
		return fmt.Errorf("making the data directory private: %w", err)
	}
	list, _, err := descriptor.DACL()
	if err != nil {
		return fmt.Errorf("making the data directory private: %w", err)
	}
	err = windows.SetNamedSecurityInfo(path, windows.SE_FILE_OBJECT,
		windows.DACL_SECURITY_INFORMATION|windows.PROTECTED_DACL_SECURITY_INFORMATION, nil, nil, list, nil)
	if err != nil {
		return fmt.Errorf("making the data directory private: %w", err)
	}
	return nil
}
