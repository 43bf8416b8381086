//go:build unix

package sdktest

import (
	"flag"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/store/postgres/pgtest"
)

// net/http lingers half a second on a connection whose request it refused unread, whoever shuts down meanwhile.
var lingering = goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait")

func TestMain(m *testing.M) {
	// The tests wait for other programs most of the time. A -parallel of the command line counts for more.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	status := pgtest.Run(m)
	if err := goleak.Find(lingering); err != nil && status == 0 {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

// whatAgentsDo is done by agents of one app at once, each with topics and arguments of its own. Together they need every public
// call of the SDK.
var whatAgentsDo = map[string]func(t *testing.T, a *app){
	"Claude Code is woken by its Monitor":                   claudeCodeIsWokenByItsMonitor,
	"Codex is woken by its connector":                       codexIsWokenByItsConnector,
	"messages are held for others":                          messagesAreHeldForOthers,
	"a conversation has the agent's own id":                 aConversationHasTheAgentsOwnID,
	"an optional argument filters":                          anOptionalArgumentFilters,
	"a personal event reaches its user alone":               aPersonalEventReachesItsUserAlone,
	"the app authorizes":                                    theAppAuthorizes,
	"the SDK's own tools":                                   theSDKsOwnTools,
	"the SDK's own tools need a user":                       theSDKsOwnToolsNeedAUser,
	"who speaks events is not offered the subscribing tool": whoSpeaksEventsIsNotOfferedTheSubscribingTool,
	"ChatGPT subscribes with its voucher":                   chatGPTSubscribesWithItsVoucher,
	"a user subscribes natively":                            aUserSubscribesNatively,
	"native refusals":                                       nativeRefusals,
	"topics":                                                topics,
	"a topic once":                                          aTopicOnce,
	"a topic replayed":                                      aTopicReplayed,
	"one subscription":                                      oneSubscription,
	"publish URLs":                                          publishURLs,
	"a user is unsubscribed":                                aUserIsUnsubscribed,
	"a user is forgotten":                                   aUserIsForgotten,
	"workspaces":                                            workspaces,
	"the manifest":                                          theManifest,
	"keys":                                                  keys,
	"the SDK refuses":                                       theSDKRefuses,
	"the core refuses":                                      theCoreRefuses,
	"limits":                                                limits,
	"what the core never refuses with":                      whatTheCoreNeverRefusesWith,
	"another core":                                          anotherCore,
}

// How the app is served makes no difference to where the core keeps its log, so that not every pair of the two is here.
func TestEveryCall(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		database, transport string
		serve               func(*testing.T, *node, string) *app
	}{
		{"SQLite", "stdio", overStdio},
		{"SQLite", "HTTP", overHTTP},
		{"PostgreSQL", "HTTP", overHTTP},
	} {
		t.Run(c.database+", "+c.transport, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, databases[c.database], core.Limits{UserSubscriptions: greed, UserWebhooks: greed})
			a := c.serve(t, n, n.newKey("app"))
			var did atomic.Int32
			t.Run("agents", func(t *testing.T) {
				for name, does := range whatAgentsDo {
					t.Run(name, func(t *testing.T) {
						t.Parallel()
						does(t, a)
						did.Add(1)
					})
				}
			})
			if int(did.Load()) == len(whatAgentsDo) { // none failed, and all were asked for
				nothingIsMissing(t, a)
			}
		})
	}
}

// nothingIsMissing checks that the app has made every public call of the SDK, and met every refusal.
func nothingIsMissing(t *testing.T, a *app) {
	t.Helper()
	a.agent(t, client{name: "claude-code"}).says(given("calls", []any{}), "not_run", nil)
	for _, code := range codes {
		if _, met := a.refusedWith.Load(code); !met {
			t.Errorf("nothing was refused with %s", code)
		}
	}
}
