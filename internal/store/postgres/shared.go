package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/postgres/internal/queries"
)

var _ store.Shared = (*Store)(nil)

// connectionClass is the first half of the advisory lock under which connections are added, removed and counted; see lockClass.
const connectionClass = 0x726f7575

// Attend implements [store.Shared].
func (s *Store) Attend(ctx context.Context, node string, lease time.Duration) (store.Attendance, error) {
	var is store.Attendance
	var lapsed bool
	err := s.beside(ctx, func(conn *pgxpool.Conn) error {
		q := queries.New(conn)
		there, err := q.CountAttending(ctx, node)
		if err != nil {
			return err
		}
		is.New, lapsed = there.Known == 0, there.Lapsed > 0
		if err := q.Attend(ctx, queries.AttendParams{Node: node, Seconds: lease.Seconds()}); err != nil {
			return err
		}
		passed, err := q.Passed(ctx, node)
		for _, row := range passed {
			is.Passed = append(is.Passed, store.Rank{ID: row.ID, Place: row.Place, Newer: int(row.Newer)})
		}
		return err
	})
	if err != nil || !lapsed {
		return is, err
	}
	return is, s.removeLapsed(ctx)
}

// removeLapsed removes the nodes whose time is over. Those with connections that stand otherwise then learn it when they attend.
func (s *Store) removeLapsed(ctx context.Context) error {
	return s.arrange(ctx, func(q *queries.Queries) error {
		left, err := q.RemoveConnectionsOfLapsed(background)
		if err != nil {
			return err
		}
		if err := q.RemoveLapsed(background); err != nil {
			return err
		}
		_, err = q.RankConnections(background, left)
		return err
	})
}

// Leave implements [store.Shared].
func (s *Store) Leave(ctx context.Context, node string) error {
	return s.arrange(ctx, func(q *queries.Queries) error {
		left, err := q.RemoveConnectionsOf(background, node)
		if err != nil {
			return err
		}
		if err := q.RemoveNode(background, node); err != nil {
			return err
		}
		_, err = q.RankConnections(background, left)
		return err
	})
}

// Connect implements [store.Shared]. It fails when the node does not attend.
func (s *Store) Connect(ctx context.Context, node string, opened []store.Connection, closed []string) (done store.Connected, err error) {
	add := queries.AddConnectionsParams{Node: node}
	for _, c := range opened {
		add.Ids, add.Apps, add.Conversations = append(add.Ids, c.ID), append(add.Apps, c.App), append(add.Conversations, c.Conversation)
		add.Paths, add.Places = append(add.Paths, c.Path), append(add.Places, c.Place)
	}
	err = s.arrange(ctx, func(q *queries.Queries) error {
		left, err := q.RemoveConnections(background, closed)
		if err != nil {
			return err
		}
		if err := q.AddConnections(background, add); err != nil {
			return err
		}
		ranks, err := q.RankConnections(background, append(left, add.Conversations...))
		for _, row := range ranks {
			if row.Node == node {
				done.Ranks = append(done.Ranks, store.Rank{ID: row.ID, Place: row.Place, Newer: int(row.Newer)})
			} else {
				done.Others = append(done.Others, row.Node)
			}
		}
		return err
	})
	slices.Sort(done.Others)
	done.Others = slices.Compact(done.Others)
	return done, err
}

// Paths implements [store.Shared].
func (s *Store) Paths(ctx context.Context, conversations []string) (map[string]string, error) {
	paths := map[string]string{}
	return paths, s.beside(ctx, func(conn *pgxpool.Conn) error {
		rows, err := queries.New(conn).Paths(ctx, conversations)
		for _, row := range rows {
			paths[row.Conversation] = row.Path
		}
		return err
	})
}

// CountConnected implements [store.Shared].
func (s *Store) CountConnected(ctx context.Context, app, topic string, at time.Time) (map[string]int, error) {
	counts := map[string]int{}
	return counts, s.beside(ctx, func(conn *pgxpool.Conn) error {
		rows, err := queries.New(conn).CountConnected(ctx, queries.CountConnectedParams{App: app, Topic: []byte(topic), At: micros(at)})
		for _, row := range rows {
			counts[row.Path] = int(row.Count)
		}
		return err
	})
}

// Turn implements [store.Shared].
func (s *Store) Turn(ctx context.Context, what, node string, lease time.Duration) (its bool, err error) {
	err = s.beside(ctx, func(conn *pgxpool.Conn) error {
		n, err := queries.New(conn).Turn(ctx, queries.TurnParams{What: what, Node: node, Seconds: lease.Seconds()})
		its = n > 0
		return err
	})
	return its, err
}

// beside runs single statements on a connection that neither views nor updates wait for.
func (s *Store) beside(ctx context.Context, f func(*pgxpool.Conn) error) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	conn, err := s.aside.Acquire(ctx)
	if err != nil {
		return unavailable(err)
	}
	defer conn.Release()
	return fault(conn.Conn(), f(conn))
}

// arrange runs f as a transaction that is alone in changing connections. Its commit does not wait for the disk.
func (s *Store) arrange(ctx context.Context, f func(*queries.Queries) error) error {
	return s.beside(ctx, func(conn *pgxpool.Conn) error {
		defer rollback(conn.Conn())
		p := newPipeline(conn.Conn())
		_, _ = p.Exec(background, "BEGIN") // which only puts it off, as with the next two
		_ = queries.New(p).SetLocal(background, settings)
		_ = queries.New(p).SetLocal(background, unsynced)
		_ = queries.New(p).LockConnections(background, connectionClass)
		if _, err := p.send(background); err != nil {
			return err
		}
		if err := f(queries.New(conn)); err != nil {
			return err
		}
		_, err := conn.Exec(background, "COMMIT")
		return err
	})
}
