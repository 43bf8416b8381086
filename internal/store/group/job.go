package group

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/rouse-dev/rouse/internal/store"
)

// A job is one call on its way through the Writer: an update, or a function to run between transactions.
type job struct {
	f       func(store.Tx) error
	between func() error
	topics  store.Topics  // which f will ask about, as far as it was said
	done    chan struct{} // closed once the fields below are final

	err      error
	panicked *panicError // the function panicked
	exited   bool        // it ended its goroutine
}

// A panicError carries a panic to the goroutine whose call it was.
type panicError struct {
	value any
	stack []byte
}

func (p *panicError) Error() string { return fmt.Sprintf("%v\n\n%s", p.value, p.stack) }

var errPanicked = errors.New("the transaction's function panicked")

// protect runs f and catches its panic.
func protect(f func() error) (panicked *panicError, err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		// Neither a return nor a panic is the end of the goroutine: see Writer.outlive.
		if value := recover(); value != nil {
			panicked, err = &panicError{value, debug.Stack()}, errPanicked
		}
	}()
	err = f()
	returned = true
	return nil, err
}
