"""A store and a dictionary do the same."""

import tempfile

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import hikv

KEYS = st.binary(max_size=3)
VALUES = st.binary(max_size=100)
ENDS = st.none() | KEYS


class Machine(RuleBasedStateMachine):
    engine = "hikv"

    def __init__(self):
        super().__init__()
        self.place = tempfile.TemporaryDirectory()
        self.model = {}
        self.open()

    def open(self):
        self.store = hikv.Store(self.place.name + "/store", engine=self.engine, durability="process")

    def teardown(self):
        self.store.close()
        self.place.cleanup()

    def between(self, start, stop):
        return [key for key in sorted(self.model) if (start is None or key >= start) and (stop is None or key < stop)]

    @rule(key=KEYS, value=VALUES)
    def put(self, key, value):
        self.store[key] = value
        self.model[key] = value

    @rule(key=KEYS)
    def delete(self, key):
        assert self.store.delete(key) == (self.model.pop(key, None) is not None)

    @rule(key=KEYS, value=VALUES)
    def insert(self, key, value):
        assert self.store.insert(key, value) == (key not in self.model)
        self.model.setdefault(key, value)

    @rule(key=KEYS)
    def get(self, key):
        assert self.store.get(key) == self.model.get(key)
        assert (key in self.store) == (key in self.model)

    @rule(keys=st.lists(KEYS, max_size=5))
    def get_many(self, keys):
        assert self.store.get_many(keys) == [self.model.get(key) for key in keys]

    @rule(start=ENDS, stop=ENDS, reverse=st.booleans())
    def read_range(self, start, stop, reverse):
        keys = self.between(start, stop)
        keys = keys[::-1] if reverse else keys
        assert list(self.store.items(start, stop, reverse=reverse)) == [(key, self.model[key]) for key in keys]
        assert len(self.store.keys(start, stop)) == len(keys)

    @rule(prefix=KEYS)
    def read_prefix(self, prefix):
        assert list(self.store.keys(prefix=prefix)) == [key for key in sorted(self.model) if key.startswith(prefix)]

    @rule(start=ENDS, stop=ENDS)
    def delete_range(self, start, stop):
        keys = self.between(start, stop)
        assert self.store.delete_range(start, stop) == len(keys)
        for key in keys:
            del self.model[key]

    @rule(changes=st.dictionaries(KEYS, st.none() | VALUES, max_size=5))
    def batch(self, changes):
        with self.store.batch() as batch:
            for key, value in changes.items():
                batch.delete(key) if value is None else batch.put(key, value)
        self.apply(changes)

    @rule(changes=st.dictionaries(KEYS, st.none() | VALUES, max_size=5), start=ENDS)
    def transaction(self, changes, start):
        def body(tx):
            for key, value in changes.items():
                tx.delete(key) if value is None else tx.put(key, value)
            return tx.items(start)

        seen = self.store.transact(body)
        self.apply(changes)
        assert seen == [(key, self.model[key]) for key in self.between(start, None)]

    def apply(self, changes):
        for key, value in changes.items():
            if value is None:
                self.model.pop(key, None)
            else:
                self.model[key] = value

    @rule()
    def reopen(self):
        self.store.close()
        self.open()

    @rule()
    def clear(self):
        self.store.clear()
        self.model.clear()

    @invariant()
    def same_length(self):
        assert len(self.store) == len(self.model)


class InkMachine(Machine):
    engine = "ink"


class PmekvMachine(Machine):
    engine = "pmekv"


SETTINGS = settings(max_examples=15, stateful_step_count=25, deadline=None)
for machine in (Machine, InkMachine, PmekvMachine):
    machine.TestCase.settings = SETTINGS

TestHikv, TestInk, TestPmekv = Machine.TestCase, InkMachine.TestCase, PmekvMachine.TestCase
