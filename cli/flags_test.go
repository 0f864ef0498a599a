package cli

import "testing"

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]int64{"512MiB": 512 << 20, "1GiB": 1 << 30, "2GB": 2e9, "1.5KiB": 1536, "100": 100, "7B": 7} {
		if got, err := parseBytes(text); err != nil || got != want {
			t.Errorf("%q is %d (%v), want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "NaN", "InfGiB", "-1", "0", "1e300GiB", "12MiBxyz", "12 MiB", "GiB", "0.1"} {
		if got, err := parseBytes(text); err == nil {
			t.Errorf("%q is taken for %d", text, got)
		}
	}
}

func TestShellQuote(t *testing.T) {
	for text, want := range map[string]string{"a-b_c/d.yaml": "a-b_c/d.yaml", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "faults[0]": "'faults[0]'", "$HOME": "'$HOME'"} {
		if got := shellQuote(text); got != want {
			t.Errorf("%q is quoted %s, want %s", text, got, want)
		}
	}
}
