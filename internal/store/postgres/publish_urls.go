package postgres

import (
	"github.com/rouse-dev/rouse/internal/store/postgres/internal/queries"
	"github.com/rouse-dev/rouse/internal/wake"
)

func (r *reader) PublishURL(id string) (wake.PublishURL, error) {
	row, err := r.q.PublishURL(background, id)
	if err != nil {
		return wake.PublishURL{}, r.fault(err)
	}
	return wake.PublishURL{
		ID: row.ID, App: row.App, Event: row.Event, Arguments: row.Arguments, To: row.Recipient, Topic: string(row.Topic),
		CreatedAt: fromMicros(row.CreatedAt), RevokedAt: fromMicros(row.RevokedAt),
	}, nil
}

func (r *reader) CountPublishURLs(app string) (int, error) {
	n, err := r.q.CountPublishURLs(background, app)
	return int(n), r.fault(err)
}

func (t *tx) PutPublishURL(u wake.PublishURL) error {
	if err := t.needApp(u.App); err != nil {
		return err
	}
	return t.changed(t.q.PutPublishURL(background, queries.PutPublishURLParams{
		ID: u.ID, App: u.App, Event: u.Event, Arguments: blob(u.Arguments), Recipient: u.To, Topic: []byte(u.Topic),
		CreatedAt: micros(u.CreatedAt), RevokedAt: micros(u.RevokedAt),
	}))
}
