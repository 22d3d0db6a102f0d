"""The scenario of a lock: held by one of four processes at a time, and free once the time of a killed holder is over."""

import subprocess
import sys

from redis import Redis
from support import PORT, expect, in_processes

PROCESS_COUNT, ROUND_COUNT = 4, 50
# The locks wait longer than the client does by default.
CONNECTION = Redis(port=PORT, socket_timeout=None)


def count_up(acquired):
    """Adds to a counter in two steps, which only the lock keeps together; `acquired` makes a context."""
    for _ in range(ROUND_COUNT):
        with acquired():
            count = int(CONNECTION.get("count") or 0)
            CONNECTION.set("count", count + 1)


def hold():
    """Reports that this process holds a lock, and waits for its end."""
    print("held", flush=True)
    sys.stdin.read()


def scenario(script, acquire):
    """`acquire(seconds)` waits so long for the lock and returns whether this process has it."""
    in_processes(PROCESS_COUNT, script, "count")
    expect(int(CONNECTION.get("count")), PROCESS_COUNT * ROUND_COUNT, "the count")
    holder = subprocess.Popen([sys.executable, script, "hold"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    expect(holder.stdout.readline(), "held\n", "the holder")
    expect(acquire(0), False, "acquired a held lock")
    holder.kill()
    holder.wait()
    expect(acquire(30), True, "acquired the lock of a killed holder")
    return f"{PROCESS_COUNT} processes counted to {PROCESS_COUNT * ROUND_COUNT}; the lock of a killed process was free when its time was over"
