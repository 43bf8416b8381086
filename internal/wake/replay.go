package wake

// A Replay is what a subscription is owed of the time before it was made. A subscription has at most one.
type Replay struct {
	Subscription string
	Conversation string
	From         Seq // it brings what the log has after here
	After        Seq // up to here it was received
	Until        Seq // it brings nothing after here: that is the subscription's own to take
}

// Finished reports whether everything it brings was received.
func (r Replay) Finished() bool { return r.After >= r.Until }

// Of is the subscription as it would be had it been made when the replay begins, and had it ended where the replay ends: what
// that takes is what the replay brings.
func (r Replay) Of(s Subscription) Subscription {
	s.From, s.Until = r.From, r.Until
	return s
}
