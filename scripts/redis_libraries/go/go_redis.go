package main

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// The client's own features, in both versions of the protocol.
func goRedisScenario() string {
	ctx := context.Background()
	for _, protocol := range []int{2, 3} {
		client := redis.NewClient(&redis.Options{Addr: address, Protocol: protocol})
		check(client.FlushDB(ctx).Err(), "FLUSHDB")
		_, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for number := range jobCount {
				pipe.Set(ctx, fmt.Sprint("key:", number), number, 0)
			}
			return nil
		})
		check(err, "a pipeline")
		found := map[string]bool{}
		for keys := client.Scan(ctx, 0, "key:*", 100).Iterator(); keys.Next(ctx); {
			found[keys.Val()] = true
		}
		expect(len(found), jobCount, "keys found")
		expect(transfer(ctx, client, false), nil, "a transaction")
		expect(transfer(ctx, client, true), redis.TxFailedErr, "a transaction with a changed key")
		sum, err := redis.NewScript("return redis.call('INCRBY', KEYS[1], ARGV[1])").Run(ctx, client, []string{"sum"}, 42).Int()
		check(err, "a script")
		expect(sum, 42, "a script")
		messages := client.Subscribe(ctx, "news")
		_, err = messages.Receive(ctx)
		check(err, "SUBSCRIBE")
		check(client.Publish(ctx, "news", "text").Err(), "PUBLISH")
		expect((<-messages.Channel()).Payload, "text", "a message")
		check(messages.Close(), "closing")
		popped := make(chan []string)
		go func() { popped <- client.BLPop(ctx, 0, "list").Val() }()
		check(client.RPush(ctx, "list", "element").Err(), "RPUSH")
		expect(<-popped, []string{"list", "element"}, "a blocking read")
		var fields struct {
			One int    `redis:"one"`
			Two string `redis:"two"`
		}
		check(client.HSet(ctx, "hash", "one", 1, "two", "2").Err(), "HSET")
		check(client.HGetAll(ctx, "hash").Scan(&fields), "HGETALL")
		expect(fmt.Sprint(fields), "{1 2}", "a hash")
		check(client.ZAdd(ctx, "sorted", redis.Z{Score: 2.5, Member: "b"}, redis.Z{Score: 1, Member: "a"}).Err(), "ZADD")
		expect(client.ZRangeWithScores(ctx, "sorted", 0, -1).Val(), []redis.Z{{Score: 1, Member: "a"}, {Score: 2.5, Member: "b"}}, "a sorted set")
		commands, err := client.Command(ctx).Result()
		check(err, "COMMAND")
		expect(commands["get"] != nil && commands["get"].ReadOnly, true, "GET is a command that reads")
		check(client.Close(), "closing")
	}
	return "in RESP2 and RESP3: a pipeline, a scan, transactions, a script, messages, a blocking read, a hash, a sorted set"
}

// Adds to a number with WATCH; optionally another client changes it in between.
func transfer(ctx context.Context, client *redis.Client, changes bool) error {
	return client.Watch(ctx, func(tx *redis.Tx) error {
		count, err := tx.Get(ctx, "key:5").Int()
		if err != nil {
			return err
		}
		if changes {
			check(client.Incr(ctx, "key:5").Err(), "INCR")
		}
		_, err = tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error { return pipe.Set(ctx, "key:5", count+10, 0).Err() })
		return err
	}, "key:5")
}
