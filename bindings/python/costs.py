"""Measures calls of hikv, lmdb-py and plyvel in one run, and prints a table: processor time of the calling thread in nanoseconds, the median
of five rounds.

usage: python costs.py DIRECTORY    (in memory; keys of 16 bytes, values of 256)
"""

import pathlib
import random
import shutil
import statistics
import sys
import time

import lmdb
import plyvel

import hikv

COUNT = 50_000
ROUNDS = 5
VALUE = bytes(256)
random.seed(7)
KEYS = [b"key:%012d" % number for number in range(COUNT)]
PICKED = random.sample(KEYS, 20_000)
ABSENT = [b"no:" + key[3:] for key in PICKED]


class Hikv:
    def __init__(self, place):
        self.store = hikv.Store(place, durability="process")
        self.get, self.put = self.store.get, self.store.put

    def batch(self, keys):
        with self.store.batch() as batch:
            for key in keys:
                batch.put(key, VALUE)

    def first(self, key):
        return next(iter(self.store.items(key)))

    def scan(self):
        return sum(1 for _ in self.store.items())


class Lmdb:
    def __init__(self, place):
        self.env = lmdb.open(str(place), map_size=1 << 30, sync=False, writemap=True)

    def get(self, key):
        with self.env.begin() as tx:
            return tx.get(key)

    def put(self, key, value):
        with self.env.begin(write=True) as tx:
            tx.put(key, value)

    def batch(self, keys):
        with self.env.begin(write=True) as tx:
            for key in keys:
                tx.put(key, VALUE)

    def first(self, key):
        with self.env.begin() as tx, tx.cursor() as cursor:
            cursor.set_range(key)
            return cursor.item()

    def scan(self):
        with self.env.begin() as tx, tx.cursor() as cursor:
            return sum(1 for _ in cursor)


class Plyvel:
    def __init__(self, place):
        self.db = plyvel.DB(str(place), create_if_missing=True)
        self.get, self.put = self.db.get, self.db.put

    def batch(self, keys):
        with self.db.write_batch() as batch:
            for key in keys:
                batch.put(key, VALUE)

    def first(self, key):
        with self.db.iterator(start=key) as iterator:
            return next(iterator)

    def scan(self):
        return sum(1 for _ in self.db)


def each(run, keys):
    begin = time.thread_time_ns()
    for key in keys:
        run(key)
    return (time.thread_time_ns() - begin) / len(keys)


def whole(run, count):
    begin = time.thread_time_ns()
    run()
    return (time.thread_time_ns() - begin) / count


def measured(subject):
    return {
        "get": each(subject.get, PICKED),
        "get, absent": each(subject.get, ABSENT),
        "put (update)": each(lambda key: subject.put(key, VALUE), PICKED),
        "batch of 1,000, an item": statistics.mean(
            whole(lambda: subject.batch(PICKED[at : at + 1000]), 1000) for at in range(0, 10_000, 1000)
        ),
        "open iterator, first item": each(subject.first, PICKED[:5000]),
        "scan, an item": whole(subject.scan, COUNT),
    }


def main():
    place = pathlib.Path(sys.argv[1])
    subjects = {}
    for name, kind in [("hikv", Hikv), ("lmdb-py", Lmdb), ("plyvel", Plyvel)]:
        shutil.rmtree(place / name, ignore_errors=True)
        (place / name).mkdir(parents=True)
        subjects[name] = kind(place / name)
        for at in range(0, COUNT, 1000):
            subjects[name].batch(KEYS[at : at + 1000])
        subjects[name].scan()
    rounds = [{name: measured(subject) for name, subject in subjects.items()} for _ in range(ROUNDS)]
    print("| |", " | ".join(subjects), "|")
    print("|-|" + "-|" * len(subjects))
    for call in rounds[0]["hikv"]:
        medians = [statistics.median(found[name][call] for found in rounds) for name in subjects]
        print(f"| {call} |", " | ".join(f"{median:,.0f}" for median in medians), "|")
    subjects["hikv"].store.close()


main()
