package refusal

import "net/http"

// The codes. Those the public SDKs know keep the names they have there.
const (
	BadRequest          Code = "bad_request"
	BadArguments        Code = "bad_arguments"
	BadPayload          Code = "bad_payload"
	TooLarge            Code = "too_large"
	Unauthorized        Code = "unauthorized"
	Forbidden           Code = "forbidden"
	PrivateTopic        Code = "private_topic"
	NotFound            Code = "not_found"
	MethodNotAllowed    Code = "method_not_allowed"
	UnknownApp          Code = "unknown_app"
	UnknownKey          Code = "unknown_key"
	UnknownEvent        Code = "unknown_event"
	UnknownSession      Code = "unknown_session"
	UnknownSubscription Code = "unknown_subscription"
	BadTicket           Code = "bad_ticket"
	Exists              Code = "exists"
	Unsupported         Code = "unsupported"
	CallbackFailed      Code = "callback_failed"
	SubscriptionLimit   Code = "subscription_limit"
	RateLimited         Code = "rate_limited"
	Internal            Code = "internal"
	Unavailable         Code = "unavailable"
	UnknownPublishURL   Code = "unknown_publish_url"
	PublishURLLimit     Code = "publish_url_limit"
	Gone                Code = "gone"
	UnknownWorkspace    Code = "unknown_workspace"
	NoGrant             Code = "no_grant"
	WorkspaceLimit      Code = "workspace_limit"
)

// An Entry is one code of the catalogue.
type Entry struct {
	Code    Code
	Status  int    // HTTP status
	Meaning string // one sentence
	Advice  string // what to do about it
}

var entries = []Entry{
	{BadRequest, http.StatusBadRequest, "The request's body, a field of it or the manifest is malformed.",
		"The message names the field and the rule. Correct it; sending it again unchanged fails again."},
	{BadArguments, http.StatusBadRequest, "The arguments do not fit the event.",
		"Give the arguments of the event's schema and no others. Values that route are made of a-z 0-9 . _ -"},
	{BadPayload, http.StatusBadRequest, "The payload does not fit the event's schema, or is over 256 KiB.",
		"Send what the schema asks for; put large content elsewhere and send its address."},
	{TooLarge, http.StatusRequestEntityTooLarge, "The request's body is larger than this call takes.",
		"The message says the limit. Send less at a time."},
	{Unauthorized, http.StatusUnauthorized, "The assertion is missing, expired, used before, for another core, or not signed by a key of an app here.",
		"Check WAKESHIFT_KEY and WAKESHIFT_CORE, and the machine's clock. `rouse key list` shows the keys there are."},
	{Forbidden, http.StatusForbidden, "The caller may not do this.", "Sign in as somebody who may, or ask the app's operator."},
	{PrivateTopic, http.StatusForbidden, "The topic is another user's (u/<user>/…).", "Subscribe to topics of the call's own user only."},
	{NotFound, http.StatusNotFound, "There is no such route.", "Check the address; docs/wire.md lists the calls."},
	{MethodNotAllowed, http.StatusMethodNotAllowed, "The route does not take this method.", "Use the method that docs/wire.md gives."},
	{UnknownApp, http.StatusNotFound, "There is no app with that id.", "`rouse app list` shows the apps."},
	{UnknownKey, http.StatusNotFound, "The app has no key with that id.", "`rouse key list` shows its keys."},
	{UnknownEvent, http.StatusNotFound, "The app's manifest has no event of that name.",
		"Define the event before using it; the SDKs put the manifest by themselves."},
	{UnknownSession, http.StatusNotFound, "The session key is not one of a conversation of this app, client and user.",
		"Call again without session_key: a new conversation is made, and its result gives a new key."},
	{UnknownSubscription, http.StatusNotFound, "There is no such subscription.", "It may have ended; list the subscriptions."},
	{UnknownPublishURL, http.StatusNotFound, "There is no such publish URL.", "Make a new one; it is shown once."},
	{PublishURLLimit, http.StatusTooManyRequests, "The app has as many publish URLs as are allowed.", "Revoke those that are no longer needed."},
	{Gone, http.StatusGone, "The publish URL was revoked.", "Ask the app for a new one."},
	{UnknownWorkspace, http.StatusNotFound, "The app has no such workspace.",
		"It may be that of a user who was forgotten. Ask for the user's workspace again: it is made on first use."},
	{NoGrant, http.StatusForbidden, "The workspace has no grant for this agent.", "Add the agent to the workspace first."},
	{WorkspaceLimit, http.StatusTooManyRequests, "The app has as many workspaces, or the workspace as many agents, as are allowed.",
		"Forget users who are gone."},
	{BadTicket, http.StatusForbidden, "The ticket is unknown, used, expired, or for another thread.",
		"Call the tool again: its result carries a fresh one."},
	{Exists, http.StatusConflict, "Something with that id is there already.", "Choose another id."},
	{Unsupported, http.StatusBadRequest, "This delivery mode or option is not offered here.", "The message says what is."},
	{CallbackFailed, http.StatusBadRequest, "The webhook endpoint did not pass its verification.",
		"`reason` says what it did. It must echo the challenge within ten seconds, at a public https address."},
	{SubscriptionLimit, http.StatusTooManyRequests, "The conversation, user or app has as many subscriptions, or the app as many conversations, as are allowed.",
		"End some that are no longer needed."},
	{RateLimited, http.StatusTooManyRequests, "The app, the user or the address makes too many requests, or the app has emitted too much today.", "Wait as long as Retry-After says."},
	{Internal, http.StatusInternalServerError, "The core failed.", "Its log says why, under the request's id."},
	{Unavailable, http.StatusServiceUnavailable, "The core cannot serve this now: it is stopping, or its disk is full.",
		"Try again later; nothing of the request was kept."},
}

var byCode = func() map[Code]Entry {
	m := make(map[Code]Entry, len(entries))
	for _, e := range entries {
		m[e.Code] = e
	}
	return m
}()

// All lists the catalogue in its own order.
func All() []Entry { return append([]Entry(nil), entries...) }

// Lookup gives a code's entry, that of Internal for a code the catalogue does not have.
func Lookup(code Code) Entry {
	if e, ok := byCode[code]; ok {
		return e
	}
	return byCode[Internal]
}
