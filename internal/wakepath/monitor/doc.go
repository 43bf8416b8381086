// Package monitor is the wake path of harnesses that read a command's output: a capability URL that streams one message a line.
//
// The command in a tool result runs curl on GET /w/<token>; what it prints wakes the agent. Here belong the lines, their
// pacing to what the harness takes, keepalives, and when a line counts as delivered. What is owed is read from the core's
// inbox; the command itself and its words are the core's and the harness table's.
//
// How a stream may end means something to the command: a clean end, or 204, ends it for good; a stream cut short makes it
// come back. So a stream is ended cleanly only when nothing is left to wait for, and cut when the core stops or fails.
package monitor
