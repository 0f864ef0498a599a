package reports

import (
	"os"
	"testing"
)

func TestLook(t *testing.T) {
	for _, fenced := range []bool{false, true} {
		m := lockPause(fenced)
		b, err := renderHTML(&m, map[string]string{"k1": "porcupine-k1.html"})
		if err != nil {
			t.Fatal(err)
		}
		name := "/tmp/look/a.html"
		if fenced {
			name = "/tmp/look/b.html"
		}
		os.WriteFile(name, b, 0o644)
		t.Log(len(b))
	}
}
