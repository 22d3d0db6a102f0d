"""Parts of the scenarios: worker processes, jobs of which one kills its worker, and checks."""

import collections
import os
import pathlib
import select
import signal
import subprocess
import sys
import time

PORT = int(os.environ["REDIS_PORT"])
URL = f"redis://127.0.0.1:{PORT}/0"
# A directory of the scenario's own.
PLACE = pathlib.Path(os.environ["SCENARIO_DIR"])
JOB_COUNT = 1000
# The job that kills its worker when it runs for the first time.
FATAL_JOB = 300
WAIT_SECONDS_MAX = 120


def expect(found, wanted, what):
    if found != wanted:
        raise AssertionError(f"{what}: {found!r}, not {wanted!r}")


def run(number):
    """The work of a job: reports its number to the scenario; the fatal job ends the process the first time."""
    if number == FATAL_JOB:
        try:
            (PLACE / "killed").touch(exist_ok=False)
            os.kill(os.getpid(), signal.SIGKILL)
        except FileExistsError:
            pass
    os.write(int(os.environ["REPORTS"]), b"%d\n" % number)


class Workers:
    """Processes that run `python SCRIPT work`; their jobs' reports arrive in one pipe."""

    def __init__(self, script, count):
        self.reports, self.entrance = os.pipe()
        self.script, self.rest, self.processes = script, b"", []
        self.numbers = collections.Counter()
        for _ in range(count):
            self.start()

    def start(self):
        environment = {**os.environ, "REPORTS": str(self.entrance)}
        command = [sys.executable, self.script, "work"]
        process = subprocess.Popen(command, env=environment, pass_fds=[self.entrance], stdin=subprocess.PIPE)
        self.processes.append(process)

    def collect(self, is_complete):
        """Reads reports until they are complete."""
        end = time.monotonic() + WAIT_SECONDS_MAX
        while not is_complete(self.numbers):
            if not select.select([self.reports], [], [], max(0, end - time.monotonic()))[0]:
                missing = sorted(set(range(JOB_COUNT)) - set(self.numbers))
                raise AssertionError(f"{len(missing)} jobs were not done in time: {missing[:20]}")
            *lines, self.rest = (self.rest + os.read(self.reports, 65536)).split(b"\n")
            self.numbers.update(int(line) for line in lines)

    def collect_all(self, but=frozenset()):
        """Reads reports until each job but these was done."""
        wanted = set(range(JOB_COUNT)) - but
        self.collect(lambda numbers: wanted <= set(numbers))

    def wait(self):
        """Waits until each process has ended by itself, and reads the reports that are left; returns the exit codes."""
        codes = [process.wait(timeout=WAIT_SECONDS_MAX) for process in self.processes]
        # A report is shorter than the pipe's unit of atomic writes, so the mark is the last line.
        os.write(self.entrance, b"-1\n")
        self.collect(lambda numbers: numbers[-1] > 0)
        del self.numbers[-1]
        self.processes = []
        return codes

    def stop(self):
        """Stops the processes as an operator does; returns the exit codes."""
        for process in self.processes:
            process.terminate()
        return [process.wait(timeout=WAIT_SECONDS_MAX) for process in self.processes]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait()

    def repeated(self):
        """Returns the number of jobs that were done more than once."""
        return sum(1 for count in self.numbers.values() if count > 1)


def in_processes(count, script, *words):
    """Runs `python SCRIPT WORDS` in several processes at the same time; returns their outputs."""
    command = [sys.executable, script, *words]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(count)]
    outputs = [process.communicate(timeout=WAIT_SECONDS_MAX)[0].strip() for process in started]
    expect([process.returncode for process in started], [0] * count, "exit codes")
    return outputs


def until(is_reached, what):
    """Repeats a question to the server until the answer is yes."""
    end = time.monotonic() + WAIT_SECONDS_MAX
    while not is_reached():
        if time.monotonic() > end:
            raise AssertionError(f"waited in vain until {what}")
        time.sleep(0.02)


def main(script, scenario, **roles):
    """Runs the scenario, or the role that the command line names."""
    if len(sys.argv) > 1:
        roles[sys.argv[1]]()
    else:
        print(scenario(pathlib.Path(script).resolve()))
