"""Keys, ranges, batches, snapshots, trees and transactions."""

import array
import gc
import math
import os
import signal
import subprocess
import sys
import threading
import warnings

import pytest

import hikv


def test_keys(store):
    assert store.get(b"a") is None and store.get(b"a", 7) == 7 and b"a" not in store
    with pytest.raises(KeyError) as missing:
        store[b"a"]
    assert missing.value.args == (b"a",)
    store[b"a"] = b"1"
    store.put(b"b", b"2")
    assert store[b"a"] == b"1" and store.get(b"b") == b"2" and len(store) == 2
    assert store.get_many([b"b", b"x", b"a"]) == [b"2", None, b"1"]
    assert not store.insert(b"a", b"other") and store.insert(b"c", b"3")
    assert store.delete(b"c") and not store.delete(b"c")
    with pytest.raises(KeyError):
        del store[b"c"]
    assert store.increment(b"n", 5) == 5 and store.increment(b"n") == 6 and store.increment(b"n", -7) == -1
    with pytest.raises(hikv.NotANumber):
        store.put(b"n", b"nine")
        store.increment(b"n")
    assert store.compare_and_swap(b"a", b"1", b"2") and not store.compare_and_swap(b"a", b"1", None)
    assert store.pop(b"a") == b"2" and store.setdefault(b"a", b"9") == b"9"
    store.update({b"x": b"y"})
    store.clear()
    assert len(store) == 0 and not store and dict(store) == {}


def test_values_of_any_buffer(store):
    for key in (bytearray(b"key"), memoryview(b"key"), array.array("B", b"key")):
        store[key] = memoryview(b"value")[1:3]
        assert store[b"key"] == b"al" and store[key] == b"al" and key in store
    for wrong in ("text", 7, None, [1]):
        with pytest.raises(TypeError):
            store[wrong]
        with pytest.raises(TypeError):
            store[b"key"] = wrong
    with pytest.raises(hikv.TooLong):
        store[b"k" * 70_000] = b""
    store[b""] = b""
    assert store[b""] == b""


def test_get_into(store):
    store[b"key"] = b"12345"
    room = bytearray(8)
    assert store.get_into(b"key", room) == 5 and room == b"12345\0\0\0"
    assert store.get_into(b"absent", room) is None
    short = memoryview(bytearray(3))
    assert store.get_into(b"key", short) == 5 and short == b"123"
    with pytest.raises(TypeError):
        store.get_into(b"key", b"constant")


def test_expiry(store):
    store.put(b"session", b"ada", ttl=1000)
    assert 900 < store.ttl(b"session") <= 1000
    store.expire(b"session", None)
    assert store.ttl(b"session") == math.inf and store.ttl(b"absent") is None
    store.put(b"session", b"ada", ttl=0)
    assert b"session" not in store and not store.expire(b"session", 5)
    assert store.insert(b"lease", b"1", ttl=50) and not store.insert(b"lease", b"2", ttl=50)
    for wrong in (-1, math.nan, math.inf):
        with pytest.raises(ValueError):
            store.put(b"k", b"v", ttl=wrong)


def test_ranges(store):
    for number in range(1000):
        store[b"%03d" % number] = b"v%d" % number
    assert list(store) == [b"%03d" % n for n in range(1000)]
    assert list(store.keys(b"010", b"013")) == [b"010", b"011", b"012"]
    assert list(store.items(prefix=b"99", reverse=True))[0] == (b"999", b"v999")
    assert list(reversed(store.values(b"998"))) == [b"v999", b"v998"]
    assert len(store.keys(prefix=b"1")) == 100 and len(store.keys()) == 1000
    assert b"150" in store.keys(prefix=b"1") and b"250" not in store.keys(prefix=b"1")
    assert (b"150", b"v150") in store.items(b"1") and (b"150", b"x") not in store.items()
    assert store.keys() & {b"001", b"xxx"} == {b"001"}
    with pytest.raises(ValueError):
        list(store.keys(b"1", prefix=b"1"))
    assert next(reversed(store)) == b"999"
    assert store.delete_range(b"100", b"200") == 100 and store.delete_range(None, b"100") == 100
    assert len(store) == 800
    # An iterator goes on beside writers.
    walk = iter(store)
    first = next(walk)
    store.clear()
    assert first == b"200" and sum(1 for _ in walk) < 800


def test_modify(store):
    store[b"log"] = b"one"
    assert store.modify(b"log", lambda old: old + b" two") == b"one two"
    assert store.modify(b"log", lambda old: None) is None and b"log" not in store

    def count(old):
        return b"%d" % (int(old or 0) + 1)

    threads = [threading.Thread(target=lambda: [store.modify(b"n", count) for _ in range(200)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store[b"n"] == b"800"


def test_batches(store):
    with store.batch() as batch:
        batch.put(b"a", b"1")
        batch.delete(b"a")
        batch.put(b"b", b"2", ttl=100)
        assert len(batch) == 3 and b"b" not in store
    assert dict(store) == {b"b": b"2"}
    with pytest.raises(ZeroDivisionError), store.batch() as batch:
        batch.put(b"c", b"3")
        1 / 0
    with pytest.raises(hikv.ConditionFailed), store.batch() as batch:
        batch.expect_absent(b"b")
        batch.put(b"c", b"3")
    assert b"c" not in store
    users = store.tree("users")
    with users.batch() as batch:
        batch.put(b"1", b"ann")
        batch.tree(store)
        batch.put(b"count", b"1")
    assert users[b"1"] == b"ann" and store[b"count"] == b"1"


def test_snapshots(store):
    store[b"a"] = b"1"
    jobs = store.tree("jobs")
    jobs[b"x"] = b"y"
    with store.snapshot() as snapshot:
        store[b"a"] = b"2"
        del jobs[b"x"]
        assert snapshot[b"a"] == b"1" and dict(snapshot) == {b"a": b"1"} and len(snapshot) == 1
        assert dict(snapshot.tree("jobs")) == {b"x": b"y"} and list(snapshot.keys(b"b")) == []
        assert b"a" in snapshot and snapshot.get(b"z", 5) == 5 and len(snapshot.keys(prefix=b"a")) == 1
        with pytest.raises(hikv.NoSuchTree):
            snapshot.tree("other")
    with pytest.raises(hikv.Closed):
        snapshot[b"a"]


def test_trees(store):
    todo = store.tree("todo")
    todo[b"1"] = b"x"
    assert todo.name == "todo" and store.trees() == ["todo"] and b"1" not in store
    with pytest.raises(hikv.NoSuchTree):
        store.tree("other", create=False)
    store.rename_tree("todo", "done")
    store.tree("new")[b"2"] = b"y"
    store.swap_trees("done", "new")
    assert dict(todo) == {b"2": b"y"}
    with pytest.raises(hikv.TreeExists):
        store.rename_tree("done", "new")
    store.drop_tree("done")
    with pytest.raises(hikv.NoSuchTree):
        todo[b"3"] = b"z"
    assert isinstance(todo, hikv.Tree) and not isinstance(todo, hikv.Store) and isinstance(store, hikv.Tree)


def test_transactions(store):
    store[b"ann"], store[b"bob"] = b"70", b"20"

    def pay(tx):
        ann, bob = int(tx[b"ann"]), int(tx[b"bob"])
        tx[b"ann"], tx[b"bob"] = b"%d" % (ann - 50), b"%d" % (bob + 50)
        return ann

    assert store.transact(pay) == 70 and store[b"bob"] == b"70"
    runs = []

    def disturbed(tx):
        runs.append(tx.get(b"ann"))
        if len(runs) < 3:
            other = threading.Thread(target=store.increment, args=(b"ann",))
            other.start()
            other.join()
        tx[b"seen"] = runs[-1]

    store.transact(disturbed)
    assert runs == [b"20", b"21", b"22"] and store[b"seen"] == b"22"
    with pytest.raises(hikv.Contended):
        runs.clear()
        store.transact(disturbed, attempts=2)
    with pytest.raises(ZeroDivisionError):
        store.transact(lambda tx: tx.put(b"lost", b"") or 1 / 0)
    assert b"lost" not in store
    with pytest.raises(hikv.Error):
        store.transact(lambda tx: store.transact(pay))

    todo, running = store.tree("todo"), store.tree("running")
    for number in range(100):
        todo[b"%02d" % number] = b"job"

    def take(tx):
        for key, job in tx.items(tree=todo, limit=1):
            tx.delete(key, todo)
            tx.put(key, job, running)
            return key

    taken = []

    def work():
        while (key := store.transact(take)) is not None:
            taken.append(key)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == [b"%02d" % number for number in range(100)]
    assert len(todo) == 0 and len(running) == 100


def test_closing(tmp_path):
    store = hikv.Store(tmp_path / "store", durability="process")
    store[b"a"] = b"1"
    tree, walk, snapshot = store.tree("tree"), iter(store), store.snapshot()
    with pytest.raises(hikv.Locked):
        hikv.Store(tmp_path / "store")
    store.close()
    store.close()
    assert store.closed and repr(store) == "<hikv.Store, closed>"
    for use in (lambda: store[b"a"], lambda: tree.get(b"a"), lambda: next(walk), lambda: snapshot[b"a"], store.sync):
        with pytest.raises(hikv.Closed):
            use()
    with hikv.Store(tmp_path / "store", read_only=True) as store:
        assert store[b"a"] == b"1"
        with pytest.raises(hikv.ReadOnly):
            store[b"a"] = b"2"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        store = hikv.Store(tmp_path / "other")
        del store
        gc.collect()
    assert [warning.category for warning in caught] == [ResourceWarning]
    hikv.Store(tmp_path / "other").close()


def test_close_beside_readers(tmp_path):
    for _ in range(20):
        store = hikv.Store(tmp_path / "store", durability="process")
        store[b"a"] = b"1"

        def read(store=store):
            try:
                while True:
                    assert store[b"a"] == b"1"
                    list(store.items())
            except hikv.Closed:
                pass

        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        store.close()
        for thread in threads:
            thread.join()


def test_opening(tmp_path):
    with pytest.raises(hikv.Missing):
        hikv.Store(tmp_path / "none", create=False)
    for wrong in ({"engine": "bolt"}, {"durability": "some"}, {"region_bytes_max": 1 << 50}, {"sync_interval": -1}):
        with pytest.raises(ValueError):
            hikv.Store(tmp_path / "none", **wrong)
    with pytest.raises(TypeError):
        hikv.Store(tmp_path / "none", unknown=1)
    with hikv.Store(str(tmp_path / "hash"), engine="rewo-hash", durability="process") as store:
        store[b"a"] = b"1"
        assert store.stats()["engine"] == "rewo-hash" and store.path
        with pytest.raises(hikv.Unsupported):
            list(store)
    with hikv.Store(tmp_path / "store", region_bytes_max=4 << 20, durability="process") as store:
        with pytest.raises(hikv.Full) as full:
            for number in range(100):
                store[b"%d" % number] = bytes(1 << 16)
        assert isinstance(full.value, OSError)
    with hikv.Store(tmp_path / "other", durability="process") as store:
        store[b"a"] = b"1"
        store.backup(tmp_path / "copy")
        with pytest.raises(hikv.Error):
            store.backup(tmp_path / "copy")
    with hikv.Store(tmp_path / "copy") as store:
        assert dict(store) == {b"a": b"1"}


def test_fork(store):
    store[b"a"] = b"1"
    tree, walk = store.tree("tree"), iter(store)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            for use in (lambda: store[b"a"], lambda: tree.put(b"a", b"b"), store.sync, store.stats, store.snapshot):
                with pytest.raises(hikv.Forked):
                    use()
            store.close()
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert store[b"a"] == b"1" and list(walk) == [b"a"]


def test_fork_beside_a_call(store, tmp_path):
    for number in range(2000):
        store[b"%d" % number] = bytes(10_000)
    # A backup uses the store all the time, without the interpreter's lock.
    copying = threading.Thread(target=store.backup, args=(tmp_path / "copy",))
    copying.start()
    while not (tmp_path / "copy.partial").exists() and copying.is_alive():
        pass
    child = os.fork()
    if child == 0:
        status = 1
        signal.alarm(60)
        try:
            with pytest.raises(hikv.Forked):
                store[b"1"]
            store.close()
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    copying.join()
    assert os.waitstatus_to_exitcode(status) == 0
    with hikv.Store(tmp_path / "copy") as copy:
        assert len(copy) == 2000


@pytest.mark.parametrize("use", [lambda tx: tx.items(), lambda tx: tx._commit()])
def test_transactions_release_the_interpreter(store, use):
    ran, gate = [], threading.Lock()

    def run():
        with gate:
            ran.append(True)

    interval = sys.getswitchinterval()
    with gate:
        other = threading.Thread(target=run)
        other.start()
        # From here on, the other thread runs only if this one releases the interpreter by itself.
        sys.setswitchinterval(1000)
    try:
        for _ in range(100_000):
            use(hikv.Transaction(store))
            if ran:
                break
    finally:
        sys.setswitchinterval(interval)
    assert ran
    other.join()


def test_close_beside_a_transaction(tmp_path):
    store = hikv.Store(tmp_path / "store", durability="process")
    tx = hikv.Transaction(store)
    tx.put(b"a", b"1")
    with pytest.raises(hikv.Error, match="not closed yet"):
        store.close()
    assert store.closed
    with pytest.raises(hikv.Closed):
        store.get(b"a")
    with pytest.raises(hikv.Locked):
        hikv.Store(tmp_path / "store")
    tx._commit()
    with hikv.Store(tmp_path / "store") as store:
        assert store[b"a"] == b"1"


FINALIZER = """
import gc, sys, hikv

store = hikv.Store(sys.argv[1], durability="process")
with store.batch() as batch:
    for number in range(5000):
        batch.put(b"%d" % number, b"")

class Closing:
    def __del__(self):
        store.close()

gc.disable()
gc.set_threshold(1)
walk = iter(store.items())
kept = [next(walk) for _ in range(3000)]  # so many that Python has no tuple at hand
closing = Closing()
closing.itself = closing
del closing
gc.enable()
try:
    while True:
        kept.append(next(walk))
except hikv.Closed:
    print("closed")
"""


def test_finalizer_that_closes_the_store_of_an_iterator(tmp_path):
    command = [sys.executable, "-c", FINALIZER, str(tmp_path / "store")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert (done.stdout, done.stderr) == ("closed\n", "")


WRITER = """
import sys
import hikv

with hikv.Store(sys.argv[1]) as store:
    for number in range(1_000_000):
        store[b"%08d" % number] = b"%d" % number
        sys.stdout.buffer.write(b"%d\\n" % number)
        sys.stdout.buffer.flush()
"""


def test_killed_writer(tmp_path):
    """What a writer has acknowledged is there after SIGKILL, and nothing that it did not write."""
    acknowledged = -1
    for _ in range(3):
        command = [sys.executable, "-c", WRITER, tmp_path / "store"]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
            for line in writer.stdout:
                acknowledged = max(acknowledged, int(line))
                if int(line) == 200:
                    writer.kill()
                    break
            # Acknowledged as well, before the signal.
            acknowledged = max([acknowledged, *(int(line) for line in writer.stdout if line.endswith(b"\n"))])
        assert writer.returncode == -signal.SIGKILL
        with hikv.Store(tmp_path / "store", create=False) as store:
            found = list(store.items())
        assert len(found) > acknowledged >= 200
        assert found == [(b"%08d" % number, b"%d" % number) for number in range(len(found))]
