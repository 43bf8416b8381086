package wakeshift_test

import (
	"context"
	"fmt"

	wakeshift "github.com/rouse-dev/rouse/sdk/go"
)

// An id of the app's own makes an emit safe to repeat. What does not fit the
// event's schema is refused before anything is sent.
func ExampleEvent_Emit() {
	ctx := context.Background()
	wake, stop := exampleWake()
	defer stop()

	type args struct {
		Order int `json:"order"`
	}
	type shipment struct {
		Carrier string `json:"carrier"`
		// An optional field is a pointer, or has omitempty.
		Tracking *string `json:"tracking"`
	}
	shipped := must(wakeshift.DefineEvent(wake, "order.shipped", wakeshift.EventDef[args, shipment]{
		Description: "An order was handed to a carrier",
		Text:        func(p shipment, a args) string { return fmt.Sprintf("Order %d is with %s", a.Order, p.Carrier) },
	}))

	for range 2 {
		emitted, err := shipped.Emit(ctx, args{Order: 7}, shipment{Carrier: "ACME"}, wakeshift.ID("shipment-7"))
		fmt.Println(emitted.Duplicate, err)
	}
	_, err := shipped.Emit(ctx, args{Order: 7}, shipment{}, wakeshift.To("ada"))
	fmt.Println(wakeshift.IsCode(err, wakeshift.CodeBadArguments), err)
	// Output:
	// false <nil>
	// true <nil>
	// true wakeshift: bad_arguments (400): arguments of order.shipped: the event is not personal: it takes no To
}

// Many occurrences share one request. A result of each says what became of it.
func ExampleWakeshift_EmitBatch() {
	ctx := context.Background()
	wake, stop := exampleWake()
	defer stop()

	type args struct {
		Page string `json:"page"`
	}
	type change struct {
		Words int `json:"words"`
	}
	changed := must(wakeshift.DefineEvent(wake, "page.changed", wakeshift.EventDef[args, change]{
		Description: "A page has another text",
		Text:        func(p change, a args) string { return fmt.Sprintf("%s has %d words now", a.Page, p.Words) },
	}))

	var batch []wakeshift.Emission
	for i, page := range []string{"home", "news", "home"} {
		batch = append(batch, must(changed.Prepare(args{Page: page}, change{Words: 100 + i}, wakeshift.ID("crawl-7-"+page))))
	}
	results, err := wake.EmitBatch(ctx, batch)
	for _, one := range results {
		fmt.Println(one.Duplicate, one.Err)
	}
	fmt.Println(err)
	// Output:
	// false <nil>
	// false <nil>
	// true <nil>
	// <nil>
}
