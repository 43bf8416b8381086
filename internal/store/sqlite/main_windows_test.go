package sqlite_test

func giveUpPrivileges() error { return nil }
