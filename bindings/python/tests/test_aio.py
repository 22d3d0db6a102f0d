"""Stores for asyncio: every function, that nothing blocks the loop, and cancellation at each kind of wait."""

import asyncio
import contextlib
import gc
import os
import signal
import sys
import threading

import pytest

import hikv
import hikv.aio


@pytest.fixture(params=["disk", "memory"])
def place(request, tmp_path):
    """A directory on a disk, whose store has a journal, or in memory."""
    if request.param == "memory":
        if not os.path.isdir("/dev/shm"):
            pytest.skip("no /dev/shm")
        memory = f"/dev/shm/{os.getpid()}-{tmp_path.name}"
        os.mkdir(memory)
        yield memory + "/store"
        for entry in os.scandir(memory + "/store"):
            os.unlink(entry)
        os.rmdir(memory + "/store")
        os.rmdir(memory)
    else:
        yield str(tmp_path / "store")


def run(test):
    """Runs a test on a loop that ends with no task left."""

    async def all_of_it():
        await test
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(all_of_it())


class Blocked:
    """A call that holds a thread of a store until it is released."""

    def __init__(self):
        self.started, self.released = threading.Event(), threading.Event()

    def __call__(self, *_arguments):
        self.started.set()
        assert self.released.wait(60)
        return b"done"

    async def begin(self, call):
        task = asyncio.ensure_future(call)
        await asyncio.to_thread(self.started.wait, 60)
        return task


def test_functions(place):
    async def test():
        async with hikv.aio.open(place, durability="process") as store:
            await store.put(b"a", b"1")
            assert await store.get(b"a") == b"1" and await store.get(b"x") is None and await store.get(b"x", 7) == 7
            assert await store.contains(b"a") and not await store.contains(b"x")
            assert await store.get_many(key for key in (b"a", b"x")) == [b"1", None]
            assert not await store.insert(b"a", b"2") and await store.insert(b"b", b"2", ttl=500)
            assert 400 < await store.ttl(b"b") <= 500 and await store.expire(b"b", None)
            assert await store.increment(b"n", 5) == 5
            assert await store.compare_and_swap(b"a", b"1", b"2")
            assert await store.modify(b"a", lambda old: old + b"!") == b"2!"
            assert [key async for key in store.keys()] == [b"a", b"b", b"n"]
            assert [value async for value in store.values(b"b", reverse=True)] == [b"5", b"2"]
            assert [item async for item in store.items(prefix=b"a")] == [(b"a", b"2!")]
            assert await store.count() == 3 and await store.count(b"b", b"c") == 1
            tree = await store.tree("jobs")
            async with store.batch() as batch:
                batch.delete(b"n")
                batch.tree(tree)
                batch.put(b"job", b"todo")
            with pytest.raises(ZeroDivisionError):
                async with tree.batch() as batch:
                    batch.put(b"job", b"lost")
                    1 // 0
            assert await tree.get(b"job") == b"todo" and await store.get(b"n") is None
            async with store.snapshot() as snapshot:
                await tree.delete(b"job")
                assert await (await snapshot.tree("jobs")).get(b"job") == b"todo"
                assert [key async for key in snapshot.keys()] == [b"a", b"b"] and await snapshot.count() == 2

            def swap(tx):
                a, b = tx[b"a"], tx[b"b"]
                tx[b"a"], tx[b"b"] = b, a
                return a

            assert await store.transact(swap) == b"2!" and await store.get(b"b") == b"2!"
            assert await store.trees() == ["jobs"]
            await store.drop_tree("jobs")
            with pytest.raises(hikv.NoSuchTree):
                await store.tree("jobs", create=False)
            assert await store.delete(b"a") and await store.delete_range(b"b", None) == 1
            await store.put(b"c", b"")
            await store.clear()
            await store.sync()
            await store.backup(place + "-copy")
            assert "items" in await store.stats() and await store.count() == 0
            with pytest.raises(TypeError):
                await store.get("text")
        with pytest.raises(hikv.Closed):
            await store.get(b"a")
        with pytest.raises(hikv.Closed):
            await store.clear()
        await store.close()
        assert store.closed

    run(test())
    for entry in os.scandir(place + "-copy"):
        os.unlink(entry)
    os.rmdir(place + "-copy")


def test_writes_beside_each_other(place):
    """Tasks of one loop share a disk's syncs, and each write is durable and whole."""

    async def test():
        async with hikv.aio.open(place) as store:

            async def one(number):
                await store.put(b"%04d" % number, b"v" * number)
                assert await store.get(b"%04d" % number) == b"v" * number
                await store.increment(b"sum", number)

            await asyncio.gather(*map(one, range(300)))
            assert await store.get(b"sum") == b"%d" % sum(range(300))
            # More than a page of an iterator.
            items = [item async for item in store.items(b"0", b"9")]
            assert items == [(b"%04d" % number, b"v" * number) for number in range(300)]

    run(test())
    with hikv.Store(place) as store:
        assert len(store) == 301


def test_the_loop_goes_on(place):
    """While threads of the store are held up, the loop serves reads and other tasks."""

    async def test():
        async with hikv.aio.open(place, threads=2) as store:
            await store.put(b"a", b"1")
            blocked = Blocked()
            held = await blocked.begin(store.modify(b"other", blocked))
            assert await store.get(b"a") == b"1"
            assert await store.get_many([b"a"]) == [b"1"]
            assert not held.done()
            blocked.released.set()
            assert await held == b"done"

    run(test())


def test_cancelled_before_its_start(place):
    async def test():
        async with hikv.aio.open(place, threads=1) as store:
            blocked = Blocked()
            held = await blocked.begin(store.modify(b"held", blocked))
            waiting = asyncio.ensure_future(store.modify(b"never", lambda _old: b"written"))
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            blocked.released.set()
            await held
            assert await store.get(b"never") is None

    run(test())


def test_cancelled_while_it_runs(place):
    """The call runs to its end, and closing waits for it."""

    async def test():
        async with hikv.aio.open(place) as store:
            blocked = Blocked()
            held = await blocked.begin(store.modify(b"key", blocked))
            held.cancel()
            with pytest.raises(asyncio.CancelledError):
                await held
            closing = asyncio.ensure_future(store.close())
            await asyncio.sleep(0)
            with pytest.raises(hikv.Closed):
                await store.clear()
            assert not closing.done() and not store.closed
            # A cancelled close goes on.
            closing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await closing
            blocked.released.set()

    run(test())
    with hikv.Store(place) as store:
        assert store[b"key"] == b"done"


def test_close_that_the_end_of_the_loop_cancels(place):
    """The loop ends before the close has begun, and cancels all tasks."""
    closed = []

    async def test():
        stack = contextlib.AsyncExitStack()
        store = await stack.enter_async_context(hikv.aio.open(place))
        await store.put(b"key", b"value")
        closed.append(store)
        # Begun by the loop only after this coroutine has ended.
        closed.append(asyncio.ensure_future(stack.aclose()))

    asyncio.run(test())
    store, closing = closed
    assert closing.cancelled()
    assert store.closed
    with hikv.Store(place, create=False) as store:
        assert store[b"key"] == b"value"


def test_cancelled_iteration(place):
    """No item is lost or returned twice, in whichever step the iteration is cancelled."""

    async def test():
        async with hikv.aio.open(place, durability="process") as store:
            keys = [b"%05d" % number for number in range(1_000)]
            async with store.batch() as batch:
                for key in keys:
                    batch.put(key, b"")
            walk, seen, cancelled = store.keys(), [], 0
            while True:
                step = asyncio.ensure_future(anext(walk, None))
                # The step may begin, and may end, before it is cancelled.
                await asyncio.sleep(0)
                step.cancel()
                try:
                    key = await step
                except asyncio.CancelledError:
                    cancelled += 1
                    continue
                if key is None:
                    break
                seen.append(key)
            assert seen == keys and cancelled > 0

    run(test())


def test_two_tasks_share_an_iterator(place):
    async def test():
        async with hikv.aio.open(place, durability="process") as store:
            async with store.batch() as batch:
                for number in range(1_000):
                    batch.put(b"%05d" % number, b"")
            walk = store.keys()

            async def part():
                return [key async for key in walk]

            parts = await asyncio.gather(part(), part(), part())
            assert sorted(sum(parts, [])) == [b"%05d" % number for number in range(1_000)]

    run(test())


def test_cancelled_transaction(place):
    """A body that conflicts after the cancellation does not begin again, and nothing is written."""

    async def test():
        async with hikv.aio.open(place) as store:
            blocked, runs = Blocked(), []

            def body(tx):
                runs.append(tx.get(b"read"))
                blocked()
                tx[b"written"] = b"1"

            held = await blocked.begin(store.transact(body))
            held.cancel()
            with pytest.raises(asyncio.CancelledError):
                await held
            await store.put(b"read", b"changed")
            blocked.released.set()
            await store.close()
            assert runs == [None]

    run(test())
    with hikv.Store(place) as store:
        assert dict(store) == {b"read": b"changed"}


def test_failed_transactions_end_on_their_thread(place, monkeypatch):
    """The exception of a body reaches the loop's thread without the transaction."""
    unraisable = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)

    async def test():
        async with hikv.aio.open(place) as store:

            def body(tx):
                tx[b"key"] = b"lost"
                return 1 // 0

            with pytest.raises(ZeroDivisionError):
                await store.transact(body)

            def conflicting(tx):
                tx.get(b"key")
                store._whole.increment(b"key")
                tx[b"key"] = b"lost"

            with pytest.raises(hikv.Contended):
                await store.transact(conflicting, attempts=2)
            assert await store.get(b"key") == b"2"

    run(test())
    gc.collect()
    assert unraisable == []


def test_cancelled_opening(place, monkeypatch):
    """An opening that goes on after its cancellation closes what it has opened."""
    blocked = Blocked()

    def held_up(*arguments, **options):
        blocked()
        return hikv.Store(*arguments, **options)

    monkeypatch.setattr(hikv.aio._store, "Store", held_up)

    async def test():
        async with contextlib.AsyncExitStack() as stack:
            opening = await blocked.begin(stack.enter_async_context(hikv.aio.open(place)))
            opening.cancel()
            with pytest.raises(asyncio.CancelledError):
                await opening

    run(test())
    blocked.released.set()
    # The thread that opens hands the store to another, which closes it.
    while threads := [thread for thread in threading.enumerate() if thread.name.startswith("hikv")]:
        threads[0].join(60)
        assert not threads[0].is_alive()
    with hikv.Store(place, create=False) as store:
        assert len(store) == 0


def test_failed_opening(tmp_path):
    async def test():
        with pytest.raises(hikv.Missing):
            async with hikv.aio.open(tmp_path / "none", create=False):
                pass
        with pytest.raises(ValueError, match="'fast' is no level"):
            async with hikv.aio.open(tmp_path / "store", durability="fast"):
                pass

    run(test())


def test_values_that_are_not_durable_are_not_read_early(tmp_path):
    """A value that a thread has just written may not be durable: a read by the loop then waits, without the loop."""

    async def test():
        path = tmp_path / "store"
        async with hikv.aio.open(path) as store:
            for number in range(200):
                writing = asyncio.ensure_future(store.put(b"key", b"%d" % number))
                found = await store.get(b"key")
                assert found in (None, b"%d" % (number - 1), b"%d" % number)
                await writing
                assert await store.get(b"key") == b"%d" % number

    run(test())


def test_fork(place):
    """Every call of a child raises `Forked`, instead of waiting for threads that do not exist."""

    async def test():
        async with hikv.aio.open(place) as store:
            await store.put(b"a", b"1")
            child = os.fork()
            if child == 0:
                raised = []
                for call in (store.get(b"a"), store.clear(), store.put(b"b", b"2")):
                    # The loop belongs to the parent: a call that raises at once needs none.
                    with contextlib.suppress(StopIteration):
                        try:
                            call.send(None)
                        except hikv.Forked:
                            raised.append(True)
                signal.alarm(60)
                os._exit(0 if raised == [True] * 3 else 1)
            _, status = await asyncio.to_thread(os.waitpid, child, 0)
            assert status == 0
            assert await store.get(b"b") is None

    run(test())


@pytest.mark.skipif(sys.version_info < (3, 12), reason="needs eager tasks")
def test_short_calls_end_at_once(place):
    async def test():
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
        async with hikv.aio.open(place) as store:
            await store.put(b"a", b"1")
            assert asyncio.ensure_future(store.get(b"a")).done()

    run(test())
