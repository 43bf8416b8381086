// Package publish serves publish URLs: addresses an app gives to services that can only send webhooks.
//
// A POST's body becomes an occurrence of the one event, or on the one topic, that the URL stands for; the capability in the path
// is all the authority there is. What belongs here is reading such a body; what it means is the core's.
package publish
