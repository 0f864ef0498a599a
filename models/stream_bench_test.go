package models

import (
	"context"
	"fmt"
	"testing"
	"time"
)

func BenchmarkStreamBucket(b *testing.B) {
	for _, clients := range []int{8, 60, 200} {
		b.Run(fmt.Sprint(clients), func(b *testing.B) {
			const n = 100_000
			ops := bucketHistory(simulation{clients: clients, step: 20_000, late: 1, seed: 1}, n, 100, 20_000)
			spec := toyBucket(100, 20_000, 0.001)
			b.ResetTimer()
			started := time.Now()
			for range b.N {
				if d := decideStream(context.Background(), spec, ops, testBudget); d.verdict != Pass {
					b.Fatal(d)
				}
			}
			b.ReportMetric(float64(n)*float64(b.N)/time.Since(started).Seconds(), "ops/s")
		})
	}
}
