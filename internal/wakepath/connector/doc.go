// Package connector is the wake path of harnesses with a program beside them that holds a WebSocket: Codex.
//
// The program finds a beacon in a tool result, redeems its ticket here and connects. Here belong that exchange, the frames,
// and acknowledgement: a frame counts as delivered when it is acknowledged, and comes again on the next connection until
// then. Beacons and tickets are made by the core; the program itself is `rouse connect`.
//
// How the socket is closed tells the program what to do: 1000 nothing is left to wait for, 1012 the core restarts and it should
// come back, 4001 a newer connection of the conversation took its place, anything else is trouble and it should come back.
package connector
