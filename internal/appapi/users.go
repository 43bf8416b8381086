package appapi

import "context"

// forgetUser answers whether there was anything to forget, once it is gone.
func forgetUser(ctx context.Context, r *request) (any, error) {
	var body struct {
		User string `json:"user"`
	}
	if err := r.read(&body); err != nil {
		return nil, err
	}
	forgotten, err := r.core.ForgetUser(ctx, r.caller.App, body.User)
	return object{"forgotten": forgotten}, err
}
