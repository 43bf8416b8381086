package appapi

import (
	"context"
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/harness"
	"github.com/rouse-dev/rouse/internal/wake"
)

func eventTools(ctx context.Context, r *request) (any, error) {
	var body struct {
		Call *wake.Call `json:"call"`
	}
	if err := r.read(&body); err != nil {
		return nil, err
	}
	if body.Call == nil {
		return nil, missing("call")
	}
	tools, err := r.core.EventTools(ctx, r.caller.App, *body.Call)
	if err != nil {
		return nil, err
	}
	list := []object{}
	for _, tool := range tools {
		list = append(list, eventTool(tool))
	}
	return object{"tools": list}, nil
}

func eventTool(tool harness.Tool) object {
	described := object{"name": tool.Name, "title": tool.Title, "description": tool.Description, "input_schema": tool.InputSchema}
	if tool.ReadOnly {
		described["read_only"] = true
	}
	return described
}

func callEventTool(ctx context.Context, r *request) (any, error) {
	var body struct {
		Call      *wake.Call     `json:"call"`
		Tool      *string        `json:"tool"`
		Arguments jsontext.Value `json:"arguments"`
		Problem   string         `json:"problem"`
		Refused   bool           `json:"refused"`
	}
	// Around what may be as deep as arguments are: the body, the tool's arguments.
	if err := r.readAround(2, &body); err != nil {
		return nil, err
	}
	if body.Call == nil {
		return nil, missing("call")
	}
	if body.Tool == nil {
		return nil, missing("tool")
	}
	told, err := r.core.CallEventTool(ctx, r.caller.App, *body.Call, core.EventToolCall{
		Tool: *body.Tool, Arguments: json.RawMessage(body.Arguments), Problem: body.Problem, Refused: body.Refused})
	if err != nil {
		return nil, err
	}
	answer := object{"text": told.Text, "agent": agent(told.Agent)}
	if told.Subscription != "" {
		r.addition = told.Addition
		answer["id"], answer["session"], answer["addition"] = told.Subscription, told.Session, addition(told.Addition)
	}
	return answer, nil
}
