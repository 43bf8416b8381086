// Package refusal is the one catalogue of errors that leave the core: their codes, HTTP statuses, what they mean and what to do.
//
// Here belongs every code an app, an operator or an agent can be answered with. docs/errors.md is generated from it. What
// does not belong here: faults of the core itself, which are logged with their cause and answered as `internal` or
// `unavailable` without it.
package refusal

//go:generate go run ../../cmd/rouse docs errors --out ../../docs/errors.md
