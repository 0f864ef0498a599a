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
	if err := WriteStory("/tmp/look/story.html", lockPause(false), lockPause(true), "lock-pause/report.html", "lock-pause-fenced/report.html"); err != nil {
		t.Fatal(err)
	}
	if err := WriteSuite("/tmp/look/suite", sampleSuite()); err != nil {
		t.Fatal(err)
	}
	if err := Write("/tmp/look/run", lockPause(false)); err != nil {
		t.Fatal(err)
	}
	StoryTerminal(os.Stdout, lockPause(false), lockPause(true), Options{})
	SuiteTerminal(os.Stdout, sampleSuite(), Options{Dir: "results"})
	SuiteTerminal(os.Stdout, sampleSuite(), Options{Width: 80, Color: true})
}
