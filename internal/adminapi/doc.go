// Package adminapi is administration on the machine itself: HTTP over a Unix socket in the data directory, and the client that
// the command line uses.
//
// Whoever may open the socket may do everything: there are no tokens. The socket is for its owner alone, in a directory that
// is too. On Windows it is a Unix socket as well, guarded by the directory's access list. What does not belong here: what
// apps may do (appapi), how answers look in a terminal (cli).
//
//	GET    /v1/status                     → Status
//	GET    /v1/apps                       → {"apps": […]}
//	POST   /v1/apps {id, name}            → App
//	DELETE /v1/apps/{app}                 → {}
//	GET    /v1/apps/{app}/keys            → {"keys": […]}
//	POST   /v1/apps/{app}/keys {name}     → NewKey: the only time the key itself is shown
//	DELETE /v1/apps/{app}/keys/{key}      → {}
//	POST   /v1/apps/{app}/emit            → Emitted
//	GET    /v1/apps/{app}/subscriptions   → {"subscriptions": […]}
//	GET    /v1/apps/{app}/deliveries?webhook=&event=&failed=&before=&limit=  → {"deliveries": […]}, the newest first
//	POST   /v1/apps/{app}/deliveries/replay Replay                          → Replayed
//	GET    /v1/tail                       → trace entries as they happen, one JSON object a line, blank lines between
//	GET    /metrics                       → Prometheus text
package adminapi
