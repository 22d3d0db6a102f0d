// Scenarios of libraries in Go; see scripts/redis-libraries. The arguments name a scenario, and optionally a role in it.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"syscall"
)

const (
	jobCount = 1000
	// The job that kills its worker when it runs for the first time.
	fatalJob = 300
)

var (
	address   = "127.0.0.1:" + os.Getenv("REDIS_PORT")
	scenarios = map[string]map[string]func() string{
		"asynq":    {"": asynqScenario, "work": asynqWork},
		"redsync":  {"": redsyncScenario, "count": redsyncCount, "hold": redsyncHold},
		"go-redis": {"": goRedisScenario},
	}
)

func main() {
	role := ""
	if len(os.Args) > 2 {
		role = os.Args[2]
	}
	if said := scenarios[os.Args[1]][role](); said != "" {
		fmt.Println(said)
	}
}

func expect(found, wanted any, what string) {
	if !reflect.DeepEqual(found, wanted) {
		fail("%s: %v, not %v", what, found, wanted)
	}
}

func check(err error, what string) {
	if err != nil {
		fail("%s: %v", what, err)
	}
}

func fail(format string, values ...any) {
	fmt.Printf(format+"\n", values...)
	os.Exit(1)
}

// A process of this program in a role, whose lines arrive in a channel that others share.
type process struct {
	*exec.Cmd
	input io.WriteCloser
}

func start(role string, lines chan<- string) process {
	command := exec.Command(os.Args[0], os.Args[1], role)
	command.Stderr = os.Stderr
	input, err := command.StdinPipe()
	check(err, "a pipe")
	output, err := command.StdoutPipe()
	check(err, "a pipe")
	check(command.Start(), "a process")
	go func() {
		for scanner := bufio.NewScanner(output); scanner.Scan(); {
			lines <- scanner.Text()
		}
	}()
	return process{command, input}
}

// Returns the signal that ended the process, or its exit code.
func (p process) end() string {
	_ = p.Wait()
	if status := p.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() {
		return status.Signal().String()
	}
	return strconv.Itoa(p.ProcessState.ExitCode())
}

func untilClosed() {
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// The work of a job: reports its number to the scenario; the fatal job ends the process the first time.
func run(number int) {
	if number == fatalJob {
		mark, err := os.OpenFile(filepath.Join(os.Getenv("SCENARIO_DIR"), "killed"), os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			_ = mark.Close()
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
	}
	fmt.Println(number)
}

// Reads reports until so many jobs were done; adds to the times that each was done.
func collect(lines <-chan string, times map[string]int, count int) {
	for len(times) < count {
		times[strings.TrimSpace(<-lines)]++
	}
}
