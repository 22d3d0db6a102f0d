package main

import (
	"context"
	"fmt"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

const (
	processCount = 4
	roundCount   = 50
)

var client = redis.NewClient(&redis.Options{Addr: address})

func mutex(seconds int, options ...redsync.Option) *redsync.Mutex {
	options = append(options, redsync.WithExpiry(time.Duration(seconds)*time.Second), redsync.WithRetryDelay(10*time.Millisecond))
	return redsync.New(goredis.NewPool(client)).NewMutex("lock", options...)
}

func redsyncCount() string {
	ctx := context.Background()
	for range roundCount {
		lock := mutex(30, redsync.WithTries(10_000))
		check(lock.Lock(), "the lock")
		count, _ := client.Get(ctx, "count").Int()
		check(client.Set(ctx, "count", count+1, 0).Err(), "the count")
		_, err := lock.Unlock()
		check(err, "unlocking")
	}
	return ""
}

func redsyncHold() string {
	lock := mutex(2)
	check(lock.Lock(), "the lock")
	extended, err := lock.Extend()
	check(err, "extending")
	expect(extended, true, "extended")
	fmt.Println("held")
	untilClosed()
	return ""
}

// The lock is held by one of four processes at a time, and free once the time of a killed holder is over.
func redsyncScenario() string {
	lines := make(chan string)
	counters := []process{}
	for range processCount {
		counters = append(counters, start("count", lines))
	}
	for _, counter := range counters {
		expect(counter.end(), "0", "the end of a process")
	}
	count, err := client.Get(context.Background(), "count").Int()
	check(err, "the count")
	expect(count, processCount*roundCount, "the count")
	holder := start("hold", lines)
	expect(<-lines, "held", "the holder")
	expect(mutex(2, redsync.WithTries(1)).Lock() != nil, true, "a held lock is refused")
	check(holder.Process.Kill(), "killing")
	expect(holder.end(), "killed", "the end of the holder")
	check(mutex(2, redsync.WithTries(10_000)).Lock(), "the lock of a killed holder")
	return fmt.Sprintf("%d processes counted to %d; the lock of a killed process was free when its time was over", processCount, count)
}
