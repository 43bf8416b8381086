package appapi_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rouse-dev/rouse/internal/wake"
)

// emitOf is an emit in which capitals stand for what is right.
func emitOf(members string) string {
	return strings.NewReplacer("NAME", `"name":"crawl.finished"`, "ARGUMENTS", `"arguments":{"job":"j"}`, "PAYLOAD", `"payload":{"pages":1}`).Replace(`{` + members + `}`)
}

var overText = fmt.Sprintf("bad_request: text: at most %d bytes", wake.MaxText)

var badEmits = table{
	"nothing":             {`{}`, "bad_request: name: is missing"},
	"no name":             {emitOf(`ARGUMENTS,PAYLOAD`), "bad_request: name: is missing"},
	"name null":           {emitOf(`"name":null,ARGUMENTS,PAYLOAD`), "bad_request: name: is missing"},
	"name a number":       {emitOf(`"name":7,ARGUMENTS,PAYLOAD`), "bad_request: name: must be a string"},
	"name unknown":        {emitOf(`"name":"no.such",ARGUMENTS,PAYLOAD`), `unknown_event: the app's manifest has no event "no.such"`},
	"name of a novel":     {emitOf(`"name":"` + long(5000) + `",ARGUMENTS,PAYLOAD`), `unknown_event: the app's manifest has no event "` + long(80) + `…"`},
	"name with NUL":       {emitOf(`"name":"a\u0000\u001b[2J",ARGUMENTS,PAYLOAD`), `unknown_event: the app's manifest has no event "a··[2J"`},
	"no arguments":        {emitOf(`NAME,PAYLOAD`), "bad_arguments: arguments for crawl.finished: job is missing"},
	"arguments null":      {emitOf(`NAME,"arguments":null,PAYLOAD`), "bad_arguments: arguments for crawl.finished: job is missing"},
	"arguments an array":  {emitOf(`NAME,"arguments":[],PAYLOAD`), "bad_arguments: arguments for crawl.finished: must be an object"},
	"arguments a string":  {emitOf(`NAME,"arguments":"j",PAYLOAD`), "bad_arguments: arguments for crawl.finished: must be an object"},
	"argument a number":   {emitOf(`NAME,"arguments":{"job":7},PAYLOAD`), "bad_arguments: arguments for crawl.finished: job must be of type string"},
	"argument null":       {emitOf(`NAME,"arguments":{"job":null},PAYLOAD`), "bad_arguments: arguments for crawl.finished: job must be of type string"},
	"argument unknown":    {emitOf(`NAME,"arguments":{"job":"j","more":1},PAYLOAD`), `bad_arguments: arguments for crawl.finished: the event has no argument "more"`},
	"argument in capital": {emitOf(`NAME,"arguments":{"job":"J"},PAYLOAD`), "bad_arguments: arguments for crawl.finished: job: a value that routes is made of a-z 0-9 . _ -"},
	"argument with NUL":   {emitOf(`NAME,"arguments":{"job":"j\u0000"},PAYLOAD`), "bad_arguments: arguments for crawl.finished: job: a value that routes is made of a-z 0-9 . _ -"},
	"argument empty":      {emitOf(`NAME,"arguments":{"job":""},PAYLOAD`), "bad_arguments: arguments for crawl.finished: job: a value that routes is made of a-z 0-9 . _ -"},
	"argument too long":   {emitOf(`NAME,"arguments":{"job":"` + long(201) + `"},PAYLOAD`), "bad_arguments: arguments for crawl.finished: job: at most 200 characters"},
	"no payload":          {emitOf(`NAME,ARGUMENTS`), "bad_payload: payload for crawl.finished: must be an object"},
	"payload null":        {emitOf(`NAME,ARGUMENTS,"payload":null`), "bad_payload: payload for crawl.finished: must be an object"},
	"payload an array":    {emitOf(`NAME,ARGUMENTS,"payload":[{"pages":1}]`), "bad_payload: payload for crawl.finished: must be an object"},
	"payload without":     {emitOf(`NAME,ARGUMENTS,"payload":{}`), "bad_payload: payload for crawl.finished: pages is missing"},
	"payload mistyped":    {emitOf(`NAME,ARGUMENTS,"payload":{"pages":1.5}`), "bad_payload: payload for crawl.finished: pages must be of type integer"},
	"text a number":       {emitOf(`NAME,ARGUMENTS,PAYLOAD,"text":7`), "bad_request: text: must be a string"},
	"text over its limit": {emitOf(`NAME,ARGUMENTS,PAYLOAD,"text":"` + long(wake.MaxText+1) + `"`), overText},
	"text of 1 MiB":       {emitOf(`NAME,ARGUMENTS,PAYLOAD,"text":"` + long(1<<20) + `"`), overText},
	"id an object":        {emitOf(`NAME,ARGUMENTS,PAYLOAD,"id":{}`), "bad_request: id: must be a string"},
	"id too long":         {emitOf(`NAME,ARGUMENTS,PAYLOAD,"id":"` + long(257) + `"`), "bad_request: id: at most 256 characters"},
	"id with NUL":         {emitOf(`NAME,ARGUMENTS,PAYLOAD,"id":"a\u0000"`), "bad_request: id: must not contain control characters"},
	"to a list":           {emitOf(`NAME,ARGUMENTS,PAYLOAD,"to":["ada"]`), "bad_request: to: must be a string"},
	"to of no use":        {emitOf(`NAME,ARGUMENTS,PAYLOAD,"to":"ada"`), "bad_arguments: to: crawl.finished is not personal"},
}

var badSubscriptions = table{
	"nothing":             {`{}`, "bad_request: call: is missing"},
	"no call":             {`{"name":"crawl.finished","arguments":{"job":"j"}}`, "bad_request: call: is missing"},
	"call null":           {`{"call":null,"name":"crawl.finished"}`, "bad_request: call: is missing"},
	"call a string":       {`{"call":"claude-code","name":"crawl.finished"}`, "bad_request: call: must be an object"},
	"no name":             {`{"call":{},"arguments":{"job":"j"}}`, "bad_request: name: is missing"},
	"name a list":         {`{"call":{},"name":[],"arguments":{"job":"j"}}`, "bad_request: name: must be a string"},
	"name unknown":        {`{"call":{},"name":"no.such"}`, `unknown_event: the app's manifest has no event "no.such"`},
	"no arguments":        {`{"call":{},"name":"crawl.finished"}`, "bad_arguments: arguments for crawl.finished: job is missing"},
	"arguments a number":  {`{"call":{},"name":"crawl.finished","arguments":7}`, "bad_arguments: arguments for crawl.finished: must be an object"},
	"argument a list":     {`{"call":{},"name":"crawl.finished","arguments":{"job":["j"]}}`, "bad_arguments: arguments for crawl.finished: job must be of type string"},
	"argument unroutable": {`{"call":{},"name":"crawl.finished","arguments":{"job":"a/b"}}`, "bad_arguments: arguments for crawl.finished: job: a value that routes is made of a-z 0-9 . _ -"},
	"once a string":       {`{"call":{},"name":"crawl.finished","arguments":{"job":"j"},"once":"no"}`, "bad_request: once: must be true or false"},
	"an unknown session": {`{"call":{"session":"wsk_x"},"name":"crawl.finished","arguments":{"job":"j"}}`,
		"unknown_session: session: "},
}

// badUsers are bad users; rest is what follows the user.
func badUsers(rest string) table {
	return table{
		"no user":       {`{"more":1` + rest + `}`, "bad_request: user: must not be empty"},
		"user empty":    {`{"user":""` + rest + `}`, "bad_request: user: must not be empty"},
		"user a number": {`{"user":7` + rest + `}`, "bad_request: user: must be a string"},
		"user too long": {`{"user":"` + long(257) + `"` + rest + `}`, "bad_request: user: at most 256 characters"},
		"user with NUL": {`{"user":"a\u0000"` + rest + `}`, "bad_request: user: must not contain control characters"},
	}
}

var badEnds = table{
	"no id":       {`{"user":"ada"}`, "bad_request: id: is missing"},
	"id a number": {`{"user":"ada","id":7}`, "bad_request: id: must be a string"},
}

func TestPersonalEventsNeedTheirUser(t *testing.T) {
	t.Parallel()
	l := setup(t)
	l.app.send(t, "PUT", "/manifest", `{"events":[{"name":"your.turn","description":"Your turn","topic":"ev/your.turn/{game}","personal":true,`+
		`"arguments":{"type":"object","properties":{"game":{"type":"string"}},"required":["game"]},"payload":{"type":"object"}}]}`).good(t)
	refuses(t, l, "/events/emit", table{
		"for nobody": {`{"name":"your.turn","arguments":{"game":"g"},"payload":{}}`,
			"bad_arguments: to: your.turn is personal"},
		"for a user too long": {`{"name":"your.turn","arguments":{"game":"g"},"payload":{},"to":"` + long(257) + `"}`, "bad_request: to: at most 256 characters"},
	})
	refuses(t, l, "/event-subscriptions", table{
		"of nobody": {`{"call":{},"name":"your.turn","arguments":{"game":"g"}}`,
			"bad_arguments: call.user: your.turn is personal"},
	})
}
