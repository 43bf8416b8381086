// Package wake is the domain of the core: apps, conversations, subscriptions, occurrences and the rules that join them.
//
// Here belong the types every other package speaks in, and decisions that need nothing but their arguments: which names are
// allowed, which topic an event's arguments lead to, what a subscription takes, whether a changed manifest keeps its
// subscribers, how fast lines may go out. It does no I/O, keeps no clock of its own (the time is an argument) and imports
// no other package of the project but refusal, whose errors it returns for bad input.
package wake
