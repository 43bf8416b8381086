package credential_test

import (
	"regexp"
	"testing"

	"github.com/rouse-dev/rouse/internal/credential"
)

func TestPseudonyms(t *testing.T) {
	t.Parallel()
	one, other := credential.NewMaster([32]byte{1}), credential.NewMaster([32]byte{2})
	got := one.Pseudonym("crawler/ada")
	if !regexp.MustCompile(`^[a-z2-7]{26}$`).MatchString(got) {
		t.Errorf("%q", got)
	}
	if again := credential.NewMaster([32]byte{1}).Pseudonym("crawler/ada"); again != got {
		t.Errorf("the same text has two: %q and %q", got, again)
	}
	for name, differs := range map[string]string{"another text": one.Pseudonym("crawler/bob"), "another master": other.Pseudonym("crawler/ada"), "nothing": one.Pseudonym("")} {
		if differs == got {
			t.Errorf("%s has the same", name)
		}
	}
}
