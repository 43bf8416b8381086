// Package pgtest gives tests a real PostgreSQL server: one for the test binary, a database for each test.
//
// The programs of a server must be on the machine; no server need run. A cluster is made in a temporary directory, with a
// socket there and no port, and removed with the end of the binary. A machine without the programs fails the tests, and the
// failure says what to install: what is not tested does not work.
package pgtest
