package credential_test

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/credential"
)

// id and otherID are two ids as [credential.NewID] makes them.
const (
	id      = "abcdefgh234567zz"
	otherID = "zzzzzzzzzzzzzzzz"
)

var master = credential.NewMaster([32]byte{1, 2, 3})

// tokens are one token of each sort with what opens it.
func tokens() map[string]struct {
	text string
	open func(*credential.Master, string) (string, bool)
} {
	type sort = struct {
		text string
		open func(*credential.Master, string) (string, bool)
	}
	capability := func(kind credential.Kind) sort {
		return sort{master.Mint(kind, id), func(m *credential.Master, text string) (string, bool) { return m.Open(kind, text) }}
	}
	ticket := credential.Ticket{Conversation: id, Nonce: otherID, Expires: now.Add(time.Minute)}
	return map[string]sort{
		"session key": capability(credential.SessionKey),
		"stream":      capability(credential.Stream),
		"connector":   capability(credential.Connector),
		"publish URL": capability(credential.PublishURL),
		"voucher":     {master.MintVoucher(id), (*credential.Master).OpenVoucher},
		"ticket": {master.MintTicket(ticket), func(m *credential.Master, text string) (string, bool) {
			opened, ok := m.OpenTicket(text, now)
			return opened.Conversation, ok
		}},
	}
}

// TestTokensStayTheSame pins each token for a known master: what is in the hands of agents must open after an update.
func TestTokensStayTheSame(t *testing.T) {
	t.Parallel()
	got := map[string]string{}
	for name, token := range tokens() {
		got[name] = token.text
	}
	want := map[string]string{
		"session key": "wsk_abcdefgh234567zzd6kd2brgvezzbjhx7rqumioagx",
		"stream":      "wss_abcdefgh234567zz5ejtnpcuk27h7v5vjwfkj3if5f",
		"connector":   "wsc_abcdefgh234567zzz5tewegxalwfw3tdzasw65y35j",
		"publish URL": "wsp_abcdefgh234567zzbhhnv7k67basixdgnhpiccbli7",
		"voucher":     "wsv_abcdefgh234567zz7y4kuj3m2jy4pgdr",
		"ticket":      "wtk_abcdefgh234567zzzzzzzzzzzzzzzzzzabvq2zl4cw2gvhq4agtjucvv7aroovovwz",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTokensOpenOnlyAsThemselves(t *testing.T) {
	t.Parallel()
	other := credential.NewMaster([32]byte{9})
	for name, token := range tokens() {
		if got, ok := token.open(master, token.text); !ok || got != id {
			t.Errorf("%s: opened as %q, %v", name, got, ok)
		}
		if got, ok := token.open(other, token.text); ok || got != "" {
			t.Errorf("%s: another master opened it as %q", name, got)
		}
		if !regexp.MustCompile(`^[a-z]{3}_[a-z2-7]+$`).MatchString(token.text) {
			t.Errorf("%s: %q has characters that a shell, URL or regular expression may take amiss", name, token.text)
		}
		for otherName, opener := range tokens() {
			swapped := opener.text[:4] + token.text[4:]
			for _, text := range []string{token.text, swapped} {
				if got, ok := opener.open(master, text); otherName != name && (ok || got != "") {
					t.Errorf("a %s opened as a %s: %q", name, otherName, got)
				}
			}
		}
	}
}

func TestTokensHaveOneSpelling(t *testing.T) {
	t.Parallel()
	for name, token := range tokens() {
		broken := []string{"", " ", token.text[:4], token.text[4:], token.text + "a", token.text + "\n", " " + token.text, token.text + "=",
			strings.ToUpper(token.text), token.text[:4] + strings.ToUpper(token.text[4:]), strings.Repeat("a", len(token.text)),
			token.text + token.text, strings.Repeat(token.text, 10_000), token.text[:len(token.text)-1], "\x00" + token.text[1:]}
		for i := range token.text {
			for _, r := range "a7-é" {
				if changed := token.text[:i] + string(r) + token.text[i+1:]; changed != token.text {
					broken = append(broken, changed)
				}
			}
		}
		for _, text := range broken {
			if got, ok := token.open(master, text); ok || got != "" {
				t.Errorf("%s: %.80q opened as %q", name, text, got)
			}
		}
	}
}

func TestSessionKeyIsNotInTheStream(t *testing.T) {
	t.Parallel()
	key, stream := master.Mint(credential.SessionKey, id), master.Mint(credential.Stream, id)
	secret := strings.TrimPrefix(key, "wsk_"+id)
	for length := 6; length <= len(secret); length++ {
		for i := range len(secret) - length {
			if strings.Contains(stream, secret[i:i+length]) {
				t.Fatalf("%s holds a part of %s", stream, key)
			}
		}
	}
}

func TestVoucherForm(t *testing.T) {
	t.Parallel()
	voucher := master.MintVoucher(id)
	if !regexp.MustCompile(`^wsv_[a-z2-7]{32}$`).MatchString(voucher) {
		t.Errorf("%q is no voucher", voucher)
	}
}

func TestMintRefusesWhatIsNoID(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "abc", "ABCDEFGH234567ZZ", "abcdefgh234567z1", id + "a", "abcdefgh-34567zz", "éabcdefgh23456"} {
		if credential.IsID(text) {
			t.Errorf("%q is taken for an id", text)
		}
		for name, mint := range map[string]func(){
			"Mint":        func() { master.Mint(credential.Stream, text) },
			"MintVoucher": func() { master.MintVoucher(text) },
			"MintTicket":  func() { master.MintTicket(credential.Ticket{Conversation: text, Nonce: id, Expires: now}) },
			"the nonce":   func() { master.MintTicket(credential.Ticket{Conversation: id, Nonce: text, Expires: now}) },
		} {
			if !panics(mint) {
				t.Errorf("%s made a token for %q", name, text)
			}
		}
	}
}

func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}

func TestNewID(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 1000 {
		made := credential.NewID()
		if !credential.IsID(made) || seen[made] {
			t.Fatalf("%q is no id, or was made before", made)
		}
		seen[made] = true
	}
	got, err := credential.NewIDFrom(bytes.NewReader([]byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 31}))
	if diff := cmp.Diff("aaaaaaaaaaaaaaa7", got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if _, err := credential.NewIDFrom(iotest.ErrReader(errors.New("no bits"))); err == nil {
		t.Error("an id was made of nothing")
	}
}

func TestTicket(t *testing.T) {
	t.Parallel()
	want := credential.Ticket{Conversation: id, Nonce: otherID, Expires: now.Add(time.Minute)}
	written := want
	written.Expires = want.Expires.Add(999 * time.Millisecond)
	token := master.MintTicket(written)
	for offset, good := range map[time.Duration]bool{-time.Hour: true, 0: true, time.Minute - 1: true, time.Minute: false, 1e6 * time.Hour: false} {
		got, ok := master.OpenTicket(token, now.Add(offset))
		if ok != good {
			t.Errorf("after %v: ok is %v", offset, ok)
		}
		if diff := cmp.Diff(want, got); good && diff != "" {
			t.Error(diff)
		}
	}
	for _, expires := range []time.Time{{}, time.Unix(-1, 0), time.Unix(1<<40, 0)} {
		if !panics(func() { master.MintTicket(credential.Ticket{Conversation: id, Nonce: id, Expires: expires}) }) {
			t.Errorf("made a ticket that expires at %v", expires)
		}
	}
}

func TestSeal(t *testing.T) {
	t.Parallel()
	secret := []byte("whsec_something")
	sealed := master.Seal("webhook secret", "sub_1", secret)
	if bytes.Contains(sealed, secret) || bytes.Equal(sealed, master.Seal("webhook secret", "sub_1", secret)) {
		t.Error("sealed in clear, or the same twice")
	}
	got, err := master.Unseal("webhook secret", "sub_1", sealed)
	if diff := cmp.Diff(string(secret), string(got)); diff != "" || err != nil {
		t.Error(diff, err)
	}
	empty, err := master.Unseal("webhook secret", "sub_1", master.Seal("webhook secret", "sub_1", nil))
	if len(empty) != 0 || err != nil {
		t.Errorf("nothing came back as %q, %v", empty, err)
	}
	refused := func(m *credential.Master, purpose, row string, sealed []byte) {
		t.Helper()
		if got, err := m.Unseal(purpose, row, sealed); !errors.Is(err, credential.ErrUnsealed) || got != nil {
			t.Errorf("got %q, %v, want ErrUnsealed", got, err)
		}
	}
	refused(master, "webhook secret", "sub_2", sealed)
	refused(master, "other", "sub_1", sealed)
	refused(master, "webhook secret:s", "ub_1", sealed)
	refused(credential.NewMaster([32]byte{9}), "webhook secret", "sub_1", sealed)
	for i := range sealed {
		changed := bytes.Clone(sealed)
		changed[i] ^= 1
		refused(master, "webhook secret", "sub_1", changed)
		refused(master, "webhook secret", "sub_1", sealed[:i])
	}
}

func TestMasterIsNotPrinted(t *testing.T) {
	t.Parallel()
	printed := fmt.Sprintf("%v %+v %#v %s %d %x %v", master, master, master, master, master, master, struct{ M *credential.Master }{master})
	if strings.ContainsAny(strings.ReplaceAll(strings.ReplaceAll(printed, "[master key]", ""), "{}", ""), "0123456789") {
		t.Errorf("printed %s", printed)
	}
	if got := master.LogValue().String(); got != "[master key]" {
		t.Errorf("logged as %s", got)
	}
}

// FuzzOpen feeds whatever comes to everything that opens tokens. What opens must be what is minted for that id.
func FuzzOpen(f *testing.F) {
	for _, token := range tokens() {
		f.Add(token.text)
		f.Add(token.text[:len(token.text)-1] + "a")
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, kind := range []credential.Kind{credential.SessionKey, credential.Stream, credential.Connector, credential.PublishURL} {
			if got, ok := master.Open(kind, text); ok && master.Mint(kind, got) != text || !ok && got != "" {
				t.Fatalf("%q opened as %q", text, got)
			}
		}
		if got, ok := master.OpenVoucher(text); ok && master.MintVoucher(got) != text || !ok && got != "" {
			t.Fatalf("%q opened as %q", text, got)
		}
		if got, ok := master.OpenTicket(text, now); ok && master.MintTicket(got) != text || !ok && got != (credential.Ticket{}) {
			t.Fatalf("%q opened as %+v", text, got)
		}
		if _, err := master.Unseal("p", "r", []byte(text)); !errors.Is(err, credential.ErrUnsealed) {
			t.Fatalf("unsealed: %v", err)
		}
		if _, err := credential.VerifyBeacon(text, master.BeaconKey(), now); !errors.Is(err, credential.ErrRefused) {
			t.Fatalf("a beacon: %v", err)
		}
	})
}

func BenchmarkOpen(b *testing.B) {
	token := master.Mint(credential.Stream, id)
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := master.Open(credential.Stream, token); !ok {
			b.Fatal("it did not open")
		}
	}
}

func BenchmarkMint(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		master.Mint(credential.Stream, id)
	}
}
