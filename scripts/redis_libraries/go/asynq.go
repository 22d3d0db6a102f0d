package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/hibiken/asynq"
)

// A dead worker's task is free once its lease is over.
const leaseSeconds = 31

func redisOptions() asynq.RedisClientOpt { return asynq.RedisClientOpt{Addr: address} }

func asynqWork() string {
	server := asynq.NewServer(redisOptions(), asynq.Config{
		Concurrency:              1,
		LogLevel:                 asynq.FatalLevel,
		DelayedTaskCheckInterval: 200 * time.Millisecond,
		RetryDelayFunc:           func(int, error, *asynq.Task) time.Duration { return 0 },
	})
	check(server.Start(asynq.HandlerFunc(func(_ context.Context, task *asynq.Task) error {
		var number int
		if err := json.Unmarshal(task.Payload(), &number); err != nil {
			return err
		}
		run(number)
		return nil
	})), "the worker")
	untilClosed()
	server.Shutdown()
	return ""
}

// 1,000 tasks, two workers, one killed by its task, which a third recovers.
func asynqScenario() string {
	client := asynq.NewClient(redisOptions())
	for number := range jobCount {
		payload, err := json.Marshal(number)
		check(err, "a payload")
		_, err = client.Enqueue(asynq.NewTask("task", payload), asynq.Retention(time.Hour), asynq.TaskID(fmt.Sprint(number)))
		check(err, "a task")
	}
	_, err := client.Enqueue(asynq.NewTask("task", nil), asynq.TaskID("0"))
	expect(err != nil, true, "a task's identifier is refused the second time")
	lines, times := make(chan string), map[string]int{}
	first, second := start("work", lines), start("work", lines)
	collect(lines, times, jobCount-1)
	check(second.input.Close(), "closing")
	check(first.input.Close(), "closing")
	ends := map[string]int{first.end(): 1}
	ends[second.end()]++
	expect(ends, map[string]int{"0": 1, "killed": 1}, "ends of the workers")
	inspector := asynq.NewInspector(redisOptions())
	active, err := inspector.ListActiveTasks("default")
	check(err, "active tasks")
	expect(len(active) == 1 && active[0].ID == fmt.Sprint(fatalJob), true, "the killed worker's task is active")
	// The lease is in the server; a worker looks for lost leases when it starts.
	<-time.After(leaseSeconds * time.Second)
	third := start("work", lines)
	collect(lines, times, jobCount)
	check(third.input.Close(), "closing")
	expect(third.end(), "0", "the end of the third worker")
	info, err := inspector.GetQueueInfo("default")
	check(err, "the queue")
	expect([]int{info.Completed, info.Size, info.Active, info.Archived}, []int{jobCount, jobCount, 0, 0}, "completed, all, active and archived tasks")
	for number, count := range times {
		expect(count, 1, "times of task "+number)
	}
	return fmt.Sprintf("%d tasks, each done once; the killed worker's was recovered when its lease was over", jobCount)
}
