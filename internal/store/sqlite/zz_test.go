package sqlite

import ("os"; "modernc.org/sqlite")

func init() {
	if v := os.Getenv("CKPT"); v != "" { writerPragmas[5] = "wal_autocheckpoint(" + v + ")" }
	if v := os.Getenv("PS"); v != "" { writerPragmas = append([]string{"page_size("+v+")"}, writerPragmas...) }
	if os.Getenv("FD") != "" { sqlite.Fdatasync(true) }
}
