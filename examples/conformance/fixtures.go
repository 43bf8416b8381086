package main

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// nothing are the arguments of a tool that takes none.
type nothing struct{}

// addFixtures adds tools that do one thing each which a suite looks for. Their
// names are the suites'.
func addFixtures(server *mcp.Server) {
	add := func(name, description string, handler mcp.ToolHandlerFor[nothing, any]) {
		mcp.AddTool(server, &mcp.Tool{Name: name, Description: description}, handler)
	}
	add("test_missing_capability", "Needs a client that declares sampling.", needsSampling)
	add("test_logging_tool", "Logs a line, to clients that ask for the log.", logs)
	add("test_streaming_elicitation", "Asks for a name.", asksForName)
	add("test_trigger_tool_change", "Changes the list of tools.",
		func(context.Context, *mcp.CallToolRequest, nothing) (*mcp.CallToolResult, any, error) {
			mcp.AddTool(server, &mcp.Tool{Name: "test_changed", Description: "Is here since the list of tools changed."},
				func(context.Context, *mcp.CallToolRequest, nothing) (*mcp.CallToolResult, any, error) {
					return says("Here."), nil, nil
				})
			return says("The list of tools changed."), nil, nil
		})
	add("test_trigger_prompt_change", "Changes the list of prompts.",
		func(context.Context, *mcp.CallToolRequest, nothing) (*mcp.CallToolResult, any, error) {
			server.AddPrompt(&mcp.Prompt{Name: "test_changed"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
				return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{}}, nil
			})
			return says("The list of prompts changed."), nil, nil
		})
}

// needsSampling refuses clients that do not declare sampling, as a tool must that
// could not do its work without.
func needsSampling(_ context.Context, req *mcp.CallToolRequest, _ nothing) (*mcp.CallToolResult, any, error) {
	//lint:ignore SA1019 the suite looks for what is deprecated too
	if c := req.ClientCapabilities(); c != nil && c.Sampling != nil {
		return says("The client declares sampling."), nil, nil
	}
	// The SDK's type would also name roots, which are not needed.
	data := json.RawMessage(`{"requiredCapabilities":{"sampling":{}}}`)
	return nil, nil, &jsonrpc.Error{Code: mcp.CodeMissingRequiredClientCapabilities, Message: "the client must declare sampling", Data: data}
}

// logs logs, which reaches only a client that set a level.
func logs(ctx context.Context, req *mcp.CallToolRequest, _ nothing) (*mcp.CallToolResult, any, error) {
	//lint:ignore SA1019 the suite looks for what is deprecated too
	if err := req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: "test_logging_tool was called"}); err != nil {
		return nil, nil, err
	}
	return says("Logged."), nil, nil
}

// asksForName asks the client's user, by a result that is answered with another
// call: a server never sends requests of its own.
func asksForName(_ context.Context, req *mcp.CallToolRequest, _ nothing) (*mcp.CallToolResult, any, error) {
	if answer, ok := req.Params.InputResponses["name"].(*mcp.ElicitResult); ok {
		name, _ := answer.Content["name"].(string)
		return says("The name is " + name + "."), nil, nil
	}
	return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"name": &mcp.ElicitParams{
		Mode: "form", Message: "What is your name?",
		RequestedSchema: map[string]any{
			"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}}, "required": []string{"name"},
		},
	}}}, nil, nil
}
