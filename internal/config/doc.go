// Package config says where settings come from: flags, over ROUSE_* variables, over one TOML file, over defaults.
//
// A setting is a flag of `rouse serve`; its name there is its name everywhere: --public-url is ROUSE_PUBLIC_URL in the
// environment and public-url in the file. Here also belongs the data directory: where it is by the customs of the operating
// system, and that nobody else can read it. What does not belong here: what the settings do (package server) and secrets,
// which are given by the environment or a file of their own and by nothing that shows up in a list of processes.
package config
