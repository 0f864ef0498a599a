package lock

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fencepost.dev/internal/valkeytest"
)

func TestCountersAreNamed(t *testing.T) {
	for key, want := range map[string]string{
		"k":               "{k}:fencing-token",
		"":                "{}:fencing-token",
		"{user1}.lock":    "{user1}.lock:fencing-token",
		"a{b":             "{a{b}:fencing-token",
		"a}b":             "",
		"{}x":             "",
		"x:fencing-token": "",
	} {
		got, err := counterOf(key)
		if (err != nil) != (want == "") || err == nil && got != want {
			t.Errorf("counter of %q: %q, %v; want %q", key, got, err, want)
		}
	}
}

// The server itself says that a counter is in its key's slot.
func TestACounterIsInItsKeysSlot(t *testing.T) {
	server := valkeytest.Start(t, "--cluster-enabled", "yes")
	rapid.Check(t, func(t *rapid.T) {
		key := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"{", "}", "a", "b", ":"}), 1, 8).Draw(t, "key"), "")
		counter, err := counterOf(key)
		if err != nil {
			t.Skip(err)
		}
		slots := make([]int64, 2)
		for i, k := range []string{key, counter} {
			if slots[i], err = server.Direct.ClusterKeySlot(t.Context(), k).Result(); err != nil {
				t.Fatal(err)
			}
		}
		if slots[0] != slots[1] || counter == key {
			t.Fatalf("%q is in slot %d, its counter %q in %d", key, slots[0], counter, slots[1])
		}
	})
}
