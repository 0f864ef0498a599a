package sleep_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"fencepost.dev/internal/sleep"
)

func TestFor(t *testing.T) {
	for name, c := range map[string]struct {
		d, ends, wakes time.Duration // 0: never
		want           bool
		took           time.Duration
	}{
		"all of it":                  {d: 5, want: true, took: 5},
		"nothing":                    {d: 0, want: true},
		"less than nothing":          {d: -5, want: true},
		"the context ends":           {d: 5, ends: 3, took: 3},
		"it ends later":              {d: 5, ends: 7, want: true, took: 5},
		"it had ended":               {d: 5, ends: -1},
		"it had ended, and no time":  {d: 0, ends: -1},
		"woken":                      {d: 5, wakes: 2, took: 2},
		"woken later":                {d: 5, wakes: 6, want: true, took: 5},
		"woken before the context's": {d: 5, wakes: 2, ends: 3, took: 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				wakes := make(chan struct{})
				if c.ends < 0 {
					cancel()
				} else if c.ends > 0 {
					time.AfterFunc(c.ends, cancel)
				}
				if c.wakes > 0 {
					time.AfterFunc(c.wakes, func() { close(wakes) })
				}
				start := time.Now()
				if got := sleep.For(ctx, c.d, wakes); got != c.want || time.Since(start) != c.took {
					t.Errorf("%v after %s, want %v after %s", got, time.Since(start), c.want, c.took)
				}
			})
		})
	}
}
