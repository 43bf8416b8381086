// Package demo does the main job before your eyes: a core, an app, an agent that is woken.
//
// Everything in it is real but the agent: the core, its database and its HTTP, the crawler example's MCP server over streamable
// HTTP, and the Monitor command, which sh runs. In the agent's place stands an MCP client that says it is Claude Code and does
// with the tool's result what Claude Code does. What does not belong here: anything the product needs.
package demo
