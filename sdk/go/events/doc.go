// Package events is a client of MCP Events (SEP-3415) for Go programs: it lists a
// server's events, subscribes to them, and gives what happened to a loop.
//
// [Dial] makes a [Client] over Streamable HTTP; [Over] makes one that shares the
// connection of an MCP client, such as one over stdio. [Client.Subscribe] makes a
// [Subscription], and [Subscription.All] is the loop. Which of the three delivery
// modes is used, webhook, push or poll, is chosen by what the server offers for
// the event and what the program can do; the loop is the same. Polling again,
// opening streams again, refreshing webhooks, and dropping what comes twice happen
// by themselves. Where events may have been missed, the loop gets an [Occurrence]
// with Gap set.
//
// An occurrence comes at least once: one that was being handled when the process
// ended comes again, if there is a [Store]. Each has an ID by which the program
// can tell.
//
// Webhooks need a [Receiver], an [net/http.Handler] that the server can reach. It
// answers a delivery only when that is in the Store.
//
// What a server sends is bounded: a message by 8 MiB, a delivery by
// [ReceiverOptions].MaxBody, what waits to be handled by 256 occurrences or 8 MiB a
// subscription, and what is remembered to drop repetitions by 4,096 ids.
package events
