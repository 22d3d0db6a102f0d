"""redis-py's own lock: see `locks`."""

import locks
from support import main


def lock(seconds):
    return locks.CONNECTION.lock("lock", timeout=seconds, sleep=0.01)


def count():
    locks.count_up(lambda: lock(30))


def hold():
    lock(2).acquire()
    locks.hold()


def acquire(seconds):
    return lock(30).acquire(blocking=seconds > 0, blocking_timeout=seconds or None)


main(__file__, lambda script: locks.scenario(script, acquire), count=count, hold=hold)
