// Package bench measures the core as an app and an agent see it: over HTTP, with signed assertions and fsync.
//
// It holds benchmarks only, each beside a bare one that does the least any server of the kind must do, so that a figure can be
// given as a ratio and means something on another machine. Here belongs what goes through the whole server; what one package
// does is measured in that package. docs/performance.md says how to run them and what they gave.
//
//	go test -run '^$' -bench . -benchtime 2000x ./bench
package bench
