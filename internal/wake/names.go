package wake

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rouse-dev/rouse/internal/refusal"
)

// Limits of what an app may send. docs/wire.md states them.
const (
	MaxEventName    = 64        // characters
	MaxEvents       = 2000      // in one manifest
	MaxManifest     = 4 << 20   // bytes
	MaxTopic        = 512       // characters
	MaxTopics       = 100       // in one publish
	MaxText         = 64 << 10  // bytes
	MaxPayload      = 256 << 10 // bytes of compact JSON
	MaxDepth        = 64        // levels of JSON
	MaxKey          = 256       // characters of an emit's id
	MaxUser         = 256       // characters
	MaxRouteValue   = 200       // characters of one routing argument
	MaxSubscription = 10_000    // live ones of one conversation
	MaxWorkspaces   = 100_000   // of one app
	MaxGrants       = 100       // in one workspace
	MaxName         = 200       // characters of what a workspace or an agent is called
	MaxAgent        = 100       // characters of an agent's id
)

// ReservedTopicPrefix begins the topics that are the core's own.
const ReservedTopicPrefix = "rouse/"

// EventTopicPrefix begins the topics that events route to by default; apps do not subscribe to them by name.
const EventTopicPrefix = "ev/"

// ReservedEventPrefix begins the event names that are the core's own.
const ReservedEventPrefix = "wakeshift."

var (
	eventName    = regexp.MustCompile(`^[a-z][a-z0-9_-]*(\.[a-z][a-z0-9_-]*){0,4}$`)
	argumentName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)
	appID        = regexp.MustCompile(`^[a-z][a-z0-9-]{1,39}$`)
)

// routeAlphabet is what a value that routes is made of.
const routeAlphabet = "abcdefghijklmnopqrstuvwxyz0123456789._-"

// onlyHas reports whether a text has no character outside an alphabet of ASCII.
func onlyHas(text, alphabet string) bool { return strings.Trim(text, alphabet) == "" }

// CheckAppID refuses an app id that is not 2 to 40 lower-case letters, digits and dashes, beginning with a letter.
func CheckAppID(id string) error {
	if !appID.MatchString(id) {
		return refusal.New(refusal.BadRequest, "app id: 2 to 40 lower-case letters, digits and dashes, beginning with a letter")
	}
	return nil
}

// CheckEventName refuses a name that is not up to five lower-case words joined by dots, at most [MaxEventName] characters, or
// that is reserved.
func CheckEventName(name string) error {
	switch {
	case len(name) > MaxEventName:
		return refusal.New(refusal.BadRequest, "event name: at most %d characters", MaxEventName)
	case !eventName.MatchString(name):
		return refusal.New(refusal.BadRequest,
			"event name %s: up to five words joined by dots, each of a-z 0-9 _ - and beginning with a letter", Quote(name))
	case strings.HasPrefix(name, ReservedEventPrefix):
		return refusal.New(refusal.BadRequest, "event name %s: names beginning with %s are reserved", Quote(name), ReservedEventPrefix)
	}
	return nil
}

// CheckTopic refuses a topic an app may not name: empty, over [MaxTopic] characters, with spaces or unprintable characters, or
// one of the core's own.
func CheckTopic(topic string) error {
	switch {
	case topic == "":
		return refusal.New(refusal.BadRequest, "topic: must not be empty")
	case utf8.RuneCountInString(topic) > MaxTopic:
		return refusal.New(refusal.BadRequest, "topic: at most %d characters", MaxTopic)
	case strings.ContainsFunc(topic, func(r rune) bool { return !unicode.IsPrint(r) || r == ' ' }):
		return refusal.New(refusal.BadRequest, "topic: printable characters without spaces")
	case strings.HasPrefix(topic, ReservedTopicPrefix):
		return refusal.New(refusal.BadRequest, "topic: topics beginning with %s are the core's own", ReservedTopicPrefix)
	case strings.HasPrefix(topic, EventTopicPrefix):
		return refusal.New(refusal.BadRequest, "topic: topics beginning with %s belong to events; subscribe to the event", EventTopicPrefix)
	}
	return nil
}

// PrivateTopicPrefix begins the topics that are that user's own. It is empty for a user who can have none: nobody, or one
// whose name has a slash.
func PrivateTopicPrefix(user string) string {
	if user == "" || strings.Contains(user, "/") {
		return ""
	}
	return "u/" + user + "/"
}

// CheckPrivateTopic refuses another user's private topic (u/<user>/…).
func CheckPrivateTopic(topic, user string) error {
	rest, private := strings.CutPrefix(topic, "u/")
	owner, _, nested := strings.Cut(rest, "/")
	if private && nested && owner != user {
		return refusal.New(refusal.PrivateTopic, "topic: u/<user>/… is that user's own")
	}
	return nil
}

// CheckUser refuses a user id that is empty, over [MaxUser] characters or has control characters.
func CheckUser(field, user string) error {
	if user == "" {
		return refusal.New(refusal.BadRequest, "%s: must not be empty", field)
	}
	return CheckString(field, user, MaxUser)
}

// CouldBeID reports whether a text could be the id of something the core made: at most 100 letters, digits, dashes and
// underscores. What could not is not asked of a database, which may not even take it.
func CouldBeID(text string) bool {
	for i := range len(text) {
		c := text[i]
		if c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return text != "" && len(text) <= 100
}

// CheckString refuses a text over limit characters or with control characters.
func CheckString(field, s string, limit int) error {
	if utf8.RuneCountInString(s) > limit {
		return refusal.New(refusal.BadRequest, "%s: at most %d characters", field, limit)
	}
	if strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }) {
		return refusal.New(refusal.BadRequest, "%s: must not contain control characters", field)
	}
	return nil
}

// Quote shows a name that came from outside in a message: in quotes, short, unprintable characters replaced.
func Quote(name string) string {
	const most = 80
	clean := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == '"' {
			return '·'
		}
		return r
	}, name)
	if utf8.RuneCountInString(clean) > most {
		clean = string([]rune(clean)[:most]) + "…"
	}
	return `"` + clean + `"`
}
