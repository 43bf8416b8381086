//go:build unix

package main

import (
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
)

var (
	worksIn = regexp.MustCompile(`Starting PostgreSQL in (\S+)`)
	sent    = regexp.MustCompile(`(?m)^\{"type":"event","id":"(\S+?)","subject":"Crawl j1: (\d+) pages"`)
)

// The script shows what it says, and leaves nothing behind.
func TestScript(t *testing.T) {
	t.Parallel()
	command := exec.CommandContext(t.Context(), "sh", "cluster.sh")
	command.Env = append(os.Environ(), "DATABASE=", "ROUSE_SECRET=", "PORT="+strconv.Itoa(freePorts(t, 5)))
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	ids := map[string]string{}
	for _, one := range sent.FindAllSubmatch(out, -1) {
		id, pages := string(one[1]), string(one[2])
		if before, again := ids[pages]; again && before != id {
			t.Errorf("the event of %s pages came as %s and as %s", pages, before, id)
		}
		ids[pages] = id
	}
	if len(ids) != 3 || ids["12"] == "" || ids["40"] == "" || ids["95"] == "" {
		t.Errorf("events by their pages: %v, in %s", ids, out)
	}
	where := worksIn.FindSubmatch(out)
	if where == nil {
		t.Fatalf("it does not say where it works: %s", out)
	}
	if _, err := os.Stat(string(where[1])); !os.IsNotExist(err) {
		t.Errorf("it leaves %s behind: %v", where[1], err)
	}
}

// freePorts is the first of so many ports that nobody listens on, below those that the system gives to connections.
func freePorts(t *testing.T, n int) int {
	t.Helper()
	for first := 21000 + os.Getpid()%1000*8; first < 30000; first += n {
		if allFree(first, n) {
			return first
		}
	}
	t.Fatal("no ports are free")
	return 0
}

func allFree(first, n int) bool {
	for port := first; port < first+n; port++ {
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			return false
		}
		_ = listener.Close()
	}
	return true
}
