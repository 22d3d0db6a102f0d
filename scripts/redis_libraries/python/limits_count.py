"""limits: eight processes share limits of 200 hits, exactly so many of which succeed, with each strategy."""

from limits import RateLimitItemPerHour
from limits.storage import storage_from_string
from limits.strategies import FixedWindowRateLimiter, MovingWindowRateLimiter, SlidingWindowCounterRateLimiter
from support import URL, expect, in_processes, main

PROCESS_COUNT, TRIES, LIMIT = 8, 100, 200
STRATEGIES = [FixedWindowRateLimiter, MovingWindowRateLimiter, SlidingWindowCounterRateLimiter]
ITEM = RateLimitItemPerHour(LIMIT)


def hit():
    for strategy in STRATEGIES:
        limiter = strategy(storage_from_string(URL))
        print(sum(limiter.hit(ITEM, strategy.__name__) for _ in range(TRIES)))


def scenario(script):
    # So that no window ends in between, the counts are those of an hour.
    outputs = in_processes(PROCESS_COUNT, script, "hit")
    hits = [sum(column) for column in zip(*(map(int, output.split()) for output in outputs))]
    expect(hits, [LIMIT] * len(STRATEGIES), "hits that succeeded")
    for strategy in STRATEGIES:
        limiter = strategy(storage_from_string(URL))
        expect(limiter.get_window_stats(ITEM, strategy.__name__).remaining, 0, f"{strategy.__name__}: hits left")
        limiter.clear(ITEM, strategy.__name__)
        expect(limiter.hit(ITEM, strategy.__name__), True, f"{strategy.__name__}: a hit of a cleared limit")
    return f"{PROCESS_COUNT} processes, {TRIES} hits each: {LIMIT} succeeded, with each of {len(STRATEGIES)} strategies"


main(__file__, scenario, hit=hit)
