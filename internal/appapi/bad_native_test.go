package appapi_test

// about is a webhook request of a user, but for its delivery.
const about = `"call":{"user":"ada"},"name":"site.updated","arguments":{"site":"s"}`

// badNative are bad in a native request of whatever kind.
var badNative = table{
	"nothing":         {`{}`, "bad_request: call: is missing"},
	"call a list":     {`{"call":[],"params":{}}`, "bad_request: call: must be an object"},
	"refused a word":  {`{"call":{},"params":{},"refused":"yes"}`, "bad_request: refused: must be true or false"},
	"client a number": {`{"call":{"client":7},"params":{}}`, "bad_request: call.client: must be a string"},
}

// badWebhooks are bad in a request about a webhook in the flat form.
var badWebhooks = table{
	"no name":             {`{"call":{"user":"ada"},"delivery":{}}`, "bad_request: name: is missing"},
	"name a number":       {`{"call":{"user":"ada"},"name":7,"delivery":{}}`, "bad_request: name: must be a string"},
	"name unknown":        {`{"call":{"user":"ada"},"name":"no.such","delivery":{}}`, `unknown_event: the app's manifest has no event "no.such"`},
	"no delivery":         {`{` + about + `}`, "bad_request: delivery: is missing"},
	"delivery a string":   {`{` + about + `,"delivery":"https://x.example"}`, "bad_request: delivery: must be an object"},
	"another mode":        {`{` + about + `,"delivery":{"mode":"poll"}}`, `unsupported: delivery.mode: must be "webhook"`},
	"mode a number":       {`{` + about + `,"delivery":{"mode":7}}`, "bad_request: delivery.mode: must be a string"},
	"url a list":          {`{` + about + `,"delivery":{"url":[]}}`, "bad_request: delivery.url: must be a string"},
	"arguments a string":  {`{"call":{"user":"ada"},"name":"site.updated","arguments":"s","delivery":{}}`, "bad_arguments: arguments for site.updated: must be an object"},
	"a voucher mistyped":  {`{"call":{"user":"ada"},"name":"site.updated","arguments":{"site":"s","wakeshift_voucher":7},"delivery":{}}`, "bad_arguments: wakeshift_voucher: must be a string"},
	"nobody":              {`{"call":{},"name":"site.updated","arguments":{"site":"s"},"delivery":{}}`, "forbidden: a subscription belongs to somebody: sign in to the app first"},
	"a call over a limit": {`{"call":{"user":"` + long(257) + `"},"name":"site.updated","arguments":{"site":"s"},"delivery":{}}`, "bad_request: call.user: at most 256 characters"},
}

// badEndpoints are bad in a subscription in the flat form; good is a delivery that is not.
func badEndpoints(good string) table {
	return table{
		"no url":             {`{` + about + `,"delivery":{"secret":"` + secret + `"}}`, "bad_request: delivery.url: not a URL to deliver to: it must begin with https://"},
		"an http url":        {`{` + about + `,"delivery":{"url":"http://hook.example/","secret":"` + secret + `"}}`, "bad_request: delivery.url: not a URL to deliver to: http is only for localhost and loopback addresses: use https"},
		"no secret":          {`{` + about + `,"delivery":{"url":"https://hook.example/"}}`, "bad_request: delivery.secret: not a webhook secret: it must begin with whsec_"},
		"an app's refusal":   {`{` + about + `,` + good + `,"refused":true}`, "forbidden: the app does not allow site.updated with these arguments"},
		"dialect unknown":    {`{` + about + `,` + good + `,"dialect":"klingon"}`, "bad_request: dialect: draft, chatgpt or final"},
		"dialect a number":   {`{` + about + `,` + good + `,"dialect":7}`, "bad_request: dialect: must be a string"},
		"ttl_ms a string":    {`{` + about + `,` + good + `,"ttl_ms":"5m"}`, "bad_request: ttl_ms: must be a whole number of milliseconds, or null"},
		"ttl_ms a fraction":  {`{` + about + `,` + good + `,"ttl_ms":1.5}`, "bad_request: ttl_ms: must be a whole number of milliseconds, or null"},
		"ttl_ms below 0":     {`{` + about + `,` + good + `,"ttl_ms":-1}`, "bad_request: ttl_ms: must be a whole number of milliseconds, or null"},
		"cursor a number":    {`{` + about + `,` + good + `,"cursor":7}`, "bad_request: cursor: must be a string"},
		"max_age_ms a word":  {`{` + about + `,` + good + `,"max_age_ms":"all"}`, "bad_request: max_age_ms: must be an integer"},
		"an endpoint silent": {`{` + about + `,"delivery":{"url":"http://127.0.0.1:1/","secret":"` + secret + `"}}`, "callback_failed: delivery.url: the endpoint did not pass its verification (connection_refused)"},
	}
}
