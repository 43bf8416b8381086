package wakeshift_test

import (
	"context"
	"fmt"
	"time"

	wakeshift "github.com/rouse-dev/rouse/sdk/go"
)

// A watch polls what cannot announce itself, and emits once it is there.
func ExampleEvent_Watch() {
	wake, stop := exampleWake()
	defer stop()

	type args struct {
		Build string `json:"build"`
	}
	type result struct {
		Passed bool `json:"passed"`
	}
	told := make(chan string, 1)
	done := must(wakeshift.DefineEvent(wake, "build.done", wakeshift.EventDef[args, result]{
		Description: "A build has ended",
		Text: func(p result, a args) string {
			text := fmt.Sprintf("Build %s passed: %v", a.Build, p.Passed)
			told <- text
			return text
		},
	}))

	checks := 0
	check := func(context.Context) (*result, error) {
		if checks++; checks < 3 {
			return nil, nil // not yet
		}
		return &result{Passed: true}, nil
	}
	err := done.Watch(args{Build: "b1"}, check, wakeshift.WatchOptions{Every: 10 * time.Millisecond, Timeout: time.Minute})
	fmt.Println(err)
	fmt.Println(<-told)
	fmt.Println(checks, "checks")
	// Output:
	// <nil>
	// Build b1 passed: true
	// 3 checks
}
