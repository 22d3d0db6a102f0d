"""python-redis-lock: see `locks`."""

import locks
import redis_lock
from support import main


def lock(seconds):
    return redis_lock.Lock(locks.CONNECTION, "lock", expire=seconds)


def count():
    locks.count_up(lambda: lock(30))


def hold():
    lock(2).acquire()
    locks.hold()


def acquire(seconds):
    # A waiter looks again when its own lock would be over.
    return lock(2).acquire(blocking=seconds > 0)


main(__file__, lambda script: locks.scenario(script, acquire), count=count, hold=hold)
