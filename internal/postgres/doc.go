// Package postgres is how this program finds and reaches a PostgreSQL server: the database's address, its password, TLS,
// timeouts, and what stands between, a pooler for one.
//
// The tables of the store are in store/postgres, the hints between nodes in bus/postgres. Neither a password nor an address
// that holds one is in any error or text of this package.
package postgres
