package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/rouse-dev/rouse/internal/credential"
	"github.com/rouse-dev/rouse/internal/server"
	"github.com/rouse-dev/rouse/internal/store/postgres/pgtest"
	"github.com/rouse-dev/rouse/internal/wake"
)

// Two servers with one database and one master key know the same apps; one with another key is refused.
func TestSharedDatabase(t *testing.T) {
	t.Parallel()
	address := pgtest.Database(t)
	master := credential.NewMaster([32]byte{1})
	on := func(m *credential.Master) func(*server.Options) {
		return func(o *server.Options) { o.Database, o.Master = address, m }
	}
	first := setup(t, on(master))
	second, err := server.Start(t.Context(), server.Options{Data: dataDir(t), Listen: "127.0.0.1:0", Database: address, Master: master})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := second.Shutdown(); err != nil {
			t.Error(err)
		}
	}()
	apps, err := second.Core().Apps(t.Context())
	if err != nil || len(apps) != 1 || apps[0].ID != first.app.ID {
		t.Errorf("the second server knows %v, %v; want the first one's app", apps, err)
	}
	if key, _, err := second.Core().CreateKey(t.Context(), first.app.ID, "laptop"); err != nil {
		t.Error(err)
	} else if keys, err := first.Core().Keys(t.Context(), first.app.ID); err != nil || !has(keys, key.ID) {
		t.Errorf("the first server does not know the key that was made on the second: %v %v", keys, err)
	}
	response, err := http.Get(second.URL() + "/readyz")
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("/readyz: %v %v", response, err)
	}
	_ = response.Body.Close()

	_, err = server.Start(t.Context(), server.Options{Data: dataDir(t), Listen: "127.0.0.1:0", Database: address})
	if err == nil || !strings.Contains(err.Error(), "another master key") {
		t.Errorf("a server with a master key of its own: %v", err)
	}
	if strings.Contains(first.log.String(), address) {
		t.Error("the database's address is in the log")
	}
}

func has(keys []wake.Key, id string) bool {
	for _, key := range keys {
		if key.ID == id {
			return true
		}
	}
	return false
}
