// Package server assembles a core and serves it: the data directory, the database, the listener and its routes, and the
// administration socket.
//
// Here belongs what is true of every request whatever it asks: limits of size and time, the id under which it is logged, what
// happens to a panic, whose address it came from, and the order in which everything stops. `rouse serve`, `rouse dev`,
// `rouse demo` and rousetest are this package with different options. What does not belong here: what a route does (appapi and
// wakepath) and where options come from (config).
//
// Paths of streams, connectors and publish URLs are capabilities, so the log knows a request by its route, never by its path.
package server
