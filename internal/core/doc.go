// Package core is the engine: it lets apps in, keeps subscriptions, writes what is emitted to the log once, and hands each
// conversation what it is owed.
//
// It is the only user of the store and the bus. Every decision is made here or in the packages below it (wake for the
// rules, harness for recognition and words, credential for what is handed out), so that an SDK, a wake path or the
// command line only carries answers. What does not belong here: HTTP, frames and lines (appapi and wakepath), SQL (store).
//
// The way of an occurrence: [Core.Emit] checks it against the app's manifest and, in one transaction, appends it to the log,
// ends the once subscriptions it fulfils and queues webhook deliveries; then it hints at its topics. Each open stream or
// connector has an [Inbox], which is woken by the hint and reads the log from the conversation's position on.
//
// Several cores may serve one database: what they must agree on is there, and what each keeps to itself is listed in
// docs/architecture.md.
package core
