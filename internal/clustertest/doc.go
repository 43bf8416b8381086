// Package clustertest tests several nodes on one PostgreSQL database: cores in one process for what one must know of the
// other, and real `rouse serve` processes behind a balancer, which are killed under load.
//
// Here belongs what takes more than one node to see. What a store or a bus promises by itself is tested beside it.
package clustertest
