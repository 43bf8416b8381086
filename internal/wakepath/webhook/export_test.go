package webhook

// For tests from outside the package.
var (
	IsPublic   = isPublic
	RetryAfter = retryAfter
)
