// Package queries is made by sqlc from the SQL beside sqlc.yaml: a method for each statement, and a type for each table. Nothing
// but this comment is written by hand.
package queries
