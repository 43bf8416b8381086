// Package sdktest proves the core against SDKs that others publish, as they are published.
//
// It holds tests only. They install an SDK by its name from its registry, once for each user of the machine, write an app with
// what the SDK's own documentation shows, and drive that app as agents do, with the core on each of its databases. That every
// public call of the SDK has run is seen by the app, which watches and changes nothing. Here belongs what can be said of a published SDK
// alone; our own SDKs are tested where they are, and what goes over the wire in appapi and docs/wire.md.
//
// They need python3 with its venv module, a package index, PostgreSQL, sh and curl, and fail where one is missing. They run on Unix, where
// the Monitor command runs.
package sdktest
