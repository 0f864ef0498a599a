package lock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/redis/go-redis/v9"

	"fencepost.dev/primitives/lock"
)

// A critical section whose resource checks the fencing token.
func ExampleFenced() {
	ctx := context.Background()
	// MaxRetries -1: the library must not repeat a command by itself.
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379", MaxRetries: -1})
	defer client.Close()

	locks := lock.NewFenced(client)
	lease, err := locks.Acquire(ctx, "invoice:17", 10*time.Second)
	if errors.Is(err, lock.ErrNotAcquired) {
		fmt.Println("somebody else is at it")
		return
	}
	if err != nil {
		log.Fatal(err) // taken or not, nobody knows; it frees itself after 10 seconds
	}
	write := func(token int64) { /* UPDATE … SET fence = $token WHERE fence <= $token */ }
	write(lease.Token)
	if err := locks.Release(ctx, lease); errors.Is(err, lock.ErrNotHeld) {
		fmt.Println("it expired under us; the resource has judged by the token")
	}
}

// Waiting for a lock, no longer than the context allows.
func ExampleWait() {
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379", MaxRetries: -1})
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	lease, err := lock.Wait(ctx, lock.NewValkey(client), "report", 10*time.Second, 50*time.Millisecond)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("held until", lease.Until)
}
