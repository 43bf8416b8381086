// Package cli is the command line: one file a command.
//
// A command reads its arguments, asks the administration socket, the app API or a server of its own, and says what came of it:
// for people by default, for scripts with --json. Errors say what to do next. What does not belong here: anything another
// program could want to know; main only wires this to the process.
//
// Standard output carries what was asked for and nothing else, so that it can be captured; remarks go to standard error.
package cli
