package wake

import "time"

// A Pacer spaces the lines of a stream: a burst at once, then one each interval. It is a token bucket with the time as an
// argument, not safe for concurrent use.
type Pacer struct {
	burst  int
	every  time.Duration
	tokens float64
	last   time.Time
}

// NewPacer gives a pacer with its whole burst available at that time. The burst is at least 1 and the interval positive.
func NewPacer(burst int, every time.Duration, now time.Time) *Pacer {
	return &Pacer{burst: burst, every: every, tokens: float64(burst), last: now}
}

// Ready is how many lines may go out now.
func (p *Pacer) Ready(now time.Time) int {
	p.refill(now)
	// A hair below a whole token is one: the sum of many small refills is not exact.
	return int(p.tokens + 1e-6)
}

// Spend records n lines that went out.
func (p *Pacer) Spend(n int, now time.Time) {
	p.refill(now)
	p.tokens -= float64(n)
}

// Wait is how long until at least one line may go out; 0 when it may now.
func (p *Pacer) Wait(now time.Time) time.Duration {
	if p.Ready(now) > 0 {
		return 0
	}
	wait := time.Duration((1 - p.tokens) * float64(p.every))
	return max(wait, time.Millisecond)
}

func (p *Pacer) refill(now time.Time) {
	if passed := now.Sub(p.last); passed > 0 {
		p.tokens = min(float64(p.burst), p.tokens+float64(passed)/float64(p.every))
		p.last = now
	}
}
