"""pottery: its Redlock (see `locks`), a dictionary, a queue and an identifier generator."""

import locks
from pottery import NextID, RedisDeque, RedisDict, Redlock
from support import expect, main


def lock(seconds):
    return Redlock(key="lock", masters={locks.CONNECTION}, auto_release_time=seconds)


def count():
    locks.count_up(lambda: lock(30))


def hold():
    lock(2).acquire()
    locks.hold()


def acquire(seconds):
    return lock(30).acquire(blocking=seconds > 0, timeout=seconds or -1)


def scenario(script):
    said = locks.scenario(script, acquire)
    words = RedisDict({"one": 1}, redis=locks.CONNECTION, key="words")
    words["two"] = [2, 2]
    expect((words["two"], len(words), words == {"one": 1, "two": [2, 2]}), ([2, 2], 2, True), "the dictionary")
    queue = RedisDeque([1, 2, 3], maxlen=3, redis=locks.CONNECTION, key="queue")
    queue.append(4)
    expect((list(queue), queue.popleft()), ([2, 3, 4], 2), "the queue")
    identifiers = NextID(key="ids", masters={locks.CONNECTION})
    expect([next(identifiers) for _ in range(3)], [1, 2, 3], "identifiers")
    return said + "; a dictionary, a queue, identifiers"


main(__file__, scenario, count=count, hold=hold)
