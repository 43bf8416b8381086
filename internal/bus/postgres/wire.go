package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// How long is waited before a connection is tried again, at first and at most.
const (
	minBackoff = 100 * time.Millisecond
	maxBackoff = 5 * time.Second
)

// send sends what is hinted at to the other nodes. What cannot be sent is lost, and found by their looking.
func (b *Bus) send(ctx context.Context) {
	var conn *pgx.Conn
	complained := false
	defer func() { hangUp(conn) }()
	for {
		select {
		case <-b.filled:
		case <-ctx.Done():
			return
		}
		messages := b.take()
		var err error
		if conn == nil {
			conn, err = b.options.Database.Connect(ctx)
		}
		if err == nil {
			err = b.notify(ctx, conn, messages)
		}
		if err != nil && ctx.Err() == nil {
			if !complained {
				b.log.Warn("other nodes cannot be told to look; it will be tried again", "error", err)
			}
			hangUp(conn)
			conn = nil
			pause(ctx, maxBackoff)
		}
		complained = err != nil
	}
}

// notify sends the messages with one wait for the server, and none for its disk.
func (b *Bus) notify(ctx context.Context, conn *pgx.Conn, messages []string) error {
	var batch pgx.Batch
	batch.Queue("SELECT set_config('synchronous_commit', 'off', true)")
	for _, m := range messages {
		batch.Queue("SELECT pg_notify($1, $2)", b.options.Channel, m)
	}
	return conn.SendBatch(ctx, &batch).Close()
}

// listen hears the other nodes. After a time without hearing, watchers are told to look at everything.
func (b *Bus) listen(ctx context.Context) {
	complained := false
	for backoff := minBackoff; ctx.Err() == nil; backoff = min(2*backoff, maxBackoff) {
		conn, err := b.options.Database.Connect(ctx)
		if err == nil {
			_, err = conn.Exec(ctx, "LISTEN "+pgx.Identifier{b.options.Channel}.Sanitize())
		}
		if err == nil {
			backoff = minBackoff
			b.tell(ctx, true)
			b.local.HintAll()
			err = b.hear(ctx, conn)
			b.tell(ctx, false)
		}
		hangUp(conn)
		if ctx.Err() != nil {
			return
		}
		if !complained {
			b.log.Warn("other nodes cannot be heard; it will be tried again", "error", err)
		}
		complained = true
		pause(ctx, backoff)
	}
}

// hear passes on what the other nodes send until the connection breaks.
func (b *Bus) hear(ctx context.Context, conn *pgx.Conn) error {
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		from, keys, all, err := decode(n.Payload)
		switch {
		case err != nil:
			b.log.Warn("a message on the nodes' channel is none of theirs", "channel", b.options.Channel)
		case from != b.name:
			b.pass(keys, all)
		}
	}
}

// tell tells look whether this node hears the others.
func (b *Bus) tell(ctx context.Context, hears bool) {
	if b.options.Follower == nil {
		return
	}
	select {
	case b.heard <- hears:
	case <-ctx.Done():
	}
}

// hangUp closes a connection, if there is one, without waiting for long.
func hangUp(conn *pgx.Conn) {
	if conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
