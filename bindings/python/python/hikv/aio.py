"""Stores for `asyncio`: `async with hikv.aio.open(path) as store`.

No call blocks the event loop. A read of one key that needs no wait happens at once, on the loop's thread, as do short
writes of a store in memory. Everything else runs on threads of the store, so writes that are awaited together
(`asyncio.gather`) share the syncs of a disk. Calls that are not awaited one after the other happen in any order. Writes to
a disk are not deferred on the loop's thread, as reads are: a few deferred writes wait all the same, for a full log or a
longer file.

A cancelled write has happened entirely or not at all; only a read shows which. A call that
already runs on a thread runs to its end; `close` waits for it. A cancelled iteration loses no item: the next step
returns the one that the cancelled step was waiting for.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import os
import threading
import traceback
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, Generic, ParamSpec, TypeVar, overload

from . import _hikv, _store
from ._errors import Closed, Forked
from ._mapping import Buffer

__all__ = ["Batch", "Snapshot", "Store", "Tree", "Walk", "open"]

_D = TypeVar("_D")
_P = ParamSpec("_P")
_R = TypeVar("_R")
_T = TypeVar("_T")

# Items that a thread reads for an iterator at a time.
_PAGE_ITEMS_MAX = 256


class _Threads:
    """The threads of one store."""

    def __init__(self, count: int) -> None:
        self.pool = ThreadPoolExecutor(count, "hikv")
        self._owner = os.getpid()
        self._ended: asyncio.Future[None] | None = None

    async def run(self, function: Callable[_P, _R], *arguments: _P.args, **options: _P.kwargs) -> _R:
        """Runs a function on a thread. If the caller is cancelled before it starts, it does not run."""
        if self._owner != os.getpid():
            # The child of a fork does not have the threads.
            raise Forked("the store was opened before a fork")
        if self._ended is not None:
            raise Closed("the store, or this part of it, is closed")
        call = functools.partial(function, *arguments, **options)
        return await asyncio.get_running_loop().run_in_executor(self.pool, call)

    async def finish(self, function: Callable[[], None]) -> None:
        """Runs a function even if the caller is cancelled. Does nothing once the store is closed."""
        if self._ended is None:
            await asyncio.shield(self.run(function))

    async def end(self, last: Callable[[], None]) -> None:
        """Runs `last` after all other calls. Later calls raise `Closed`."""

        def end() -> None:
            self.pool.shutdown()
            last()

        if self._ended is None:
            # Not a task, which an ending loop would cancel before it has begun.
            self._ended = asyncio.get_running_loop().run_in_executor(None, end)
        # A cancelled close goes on: nothing else would end the threads.
        await asyncio.shield(self._ended)


class Walk(Generic[_T]):
    """An asynchronous iterator over a range. It reads pages of items, each on a thread."""

    def __init__(self, threads: _Threads, items: Iterable[_T]) -> None:
        self._threads = threads
        self._items = items
        self._source: Iterator[_T] | None = None
        self._page: Iterator[_T] = iter(())
        self._is_at_end = False
        # The page that is being read, or that a cancelled step has left.
        self._reading: asyncio.Future[list[_T]] | None = None

    def __aiter__(self) -> Walk[_T]:
        return self

    async def __anext__(self) -> _T:
        while True:
            for item in self._page:
                return item
            if self._is_at_end:
                raise StopAsyncIteration
            await self._turn()

    async def _turn(self) -> None:
        """Goes to the next page."""
        if self._reading is None:
            self._reading = asyncio.ensure_future(self._threads.run(self._read))
        reading = self._reading
        try:
            page = await asyncio.shield(reading)
        except BaseException:
            # After an error, the next step reads again.
            if self._reading is reading and reading.done() and (reading.cancelled() or reading.exception()):
                self._reading = None
            raise
        # Another step, of another task, may have taken the page.
        if self._reading is reading:
            self._reading, self._page, self._is_at_end = None, iter(page), not page

    def _read(self) -> list[_T]:
        if self._source is None:
            self._source = iter(self._items)
        return list(itertools.islice(self._source, _PAGE_ITEMS_MAX))


class _Ranges:
    """The functions that iterate over a range, as those of `hikv.Tree` do. Each may be used in `async for`, once."""

    def __init__(self, threads: _Threads, mapping: Any) -> None:
        self._threads = threads
        self._mapping = mapping

    def keys(
        self,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        *,
        prefix: Buffer | None = None,
        reverse: bool = False,
    ) -> Walk[bytes]:
        """Iterates over the keys from `start` on and below `stop`, or over those with a prefix, in their order."""
        return Walk(self._threads, self._mapping.keys(start, stop, prefix=prefix, reverse=reverse))

    def values(
        self,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        *,
        prefix: Buffer | None = None,
        reverse: bool = False,
    ) -> Walk[bytes]:
        """Iterates over the values, as `keys` does over the keys."""
        return Walk(self._threads, self._mapping.values(start, stop, prefix=prefix, reverse=reverse))

    def items(
        self,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        *,
        prefix: Buffer | None = None,
        reverse: bool = False,
    ) -> Walk[tuple[bytes, bytes]]:
        """Iterates over the items, as `keys` does over the keys."""
        return Walk(self._threads, self._mapping.items(start, stop, prefix=prefix, reverse=reverse))

    async def count(
        self, start: Buffer | None = None, stop: Buffer | None = None, *, prefix: Buffer | None = None
    ) -> int:
        """Returns the number of keys of a range, by default of all."""
        return await self._threads.run(len, self._mapping.keys(start, stop, prefix=prefix))


class Tree(_Ranges):
    """A tree of keys. `Store.tree` makes it."""

    def __init__(self, threads: _Threads, store: _hikv.Store, tree: _store.Tree) -> None:
        super().__init__(threads, tree)
        self._store = store
        self._tree = tree
        self._is_in_memory = store._is_in_memory

    async def _short(self, write: Callable[_P, _R], *arguments: _P.args, **options: _P.kwargs) -> _R:
        """Runs a write that takes long only if it waits for a disk."""
        if self._is_in_memory:
            return write(*arguments, **options)
        return await self._threads.run(write, *arguments, **options)

    @overload
    async def get(self, key: Buffer, default: None = None) -> bytes | None: ...
    @overload
    async def get(self, key: Buffer, default: _D) -> bytes | _D: ...
    async def get(self, key: Buffer, default: Any = None) -> Any:
        """Returns the value, or `default`."""
        read = self._store._get_now(self._tree, key)
        value = read[0] if read is not None else await self._threads.run(self._tree.get, key)
        return default if value is None else value

    async def contains(self, key: Buffer) -> bool:
        """Returns whether there is the key."""
        return await self.get(key) is not None

    async def get_many(self, keys: Iterable[Buffer]) -> list[bytes | None]:
        """Returns the values of several keys, `None` for each absent one."""
        return await self._threads.run(self._tree.get_many, list(keys))

    async def put(self, key: Buffer, value: Buffer, *, ttl: float | None = None) -> None:
        """Sets the key, which expires after `ttl` seconds."""
        await self._short(self._tree.put, key, value, ttl=ttl)

    async def insert(self, key: Buffer, value: Buffer, *, ttl: float | None = None) -> bool:
        """Puts the key if it is absent. Returns false if it is present."""
        return await self._short(self._tree.insert, key, value, ttl=ttl)

    async def delete(self, key: Buffer) -> bool:
        """Deletes the key. Returns false if it was absent."""
        return await self._short(self._tree.delete, key)

    async def increment(self, key: Buffer, by: int = 1) -> int:
        """Adds to a number in decimal text, and returns the sum."""
        return await self._short(self._tree.increment, key, by)

    async def compare_and_swap(self, key: Buffer, expected: Buffer | None, new: Buffer | None) -> bool:
        """Sets the value to `new` if it is `expected`; `None` stands for an absent key. Returns false if it is not."""
        return await self._short(self._tree.compare_and_swap, key, expected, new)

    async def modify(self, key: Buffer, f: Callable[[bytes | None], Buffer | None]) -> bytes | None:
        """Does as `hikv.Tree.modify`. `f` runs on a thread of the store."""
        return await self._threads.run(self._tree.modify, key, f)

    async def ttl(self, key: Buffer) -> float | None:
        """Returns the seconds until the key expires, infinity if it does not, or `None` if it is absent."""
        return await self._threads.run(self._tree.ttl, key)

    async def expire(self, key: Buffer, ttl: float | None) -> bool:
        """Changes the key's expiry; `None` removes it. Returns false if the key is absent."""
        return await self._short(self._tree.expire, key, ttl)

    async def delete_range(self, start: Buffer | None = None, stop: Buffer | None = None) -> int:
        """Deletes the keys from `start` on and below `stop`, one by one, and returns their number."""
        return await self._threads.run(self._tree.delete_range, start, stop)

    async def clear(self) -> None:
        """Deletes all keys in one step."""
        await self._threads.run(self._tree.clear)

    def batch(self) -> Batch:
        """Returns a batch for `async with`: its changes are applied as one step at the end, and discarded after an
        exception."""
        return Batch(self._threads, self._tree)

    def __repr__(self) -> str:
        return f"<hikv.aio of {self._tree!r}>"


class Store(Tree):
    """An open store, and the tree of its keys without a name. `open` makes it. Any number of tasks may use it."""

    def __init__(self, threads: _Threads, store: _store.Store) -> None:
        super().__init__(threads, store, store)
        self._whole = store

    async def tree(self, name: str, *, create: bool = True) -> Tree:
        """Returns the tree of this name, and creates it if there is none. Without `create`, raises `NoSuchTree`."""
        tree = await self._threads.run(self._whole.tree, name, create=create)
        return Tree(self._threads, self._whole, tree)

    async def trees(self) -> list[str]:
        """Returns the names of all trees, in their order."""
        return await self._threads.run(self._whole.trees)

    async def drop_tree(self, name: str) -> None:
        """Deletes a tree with its keys, in one step."""
        await self._threads.run(self._whole.drop_tree, name)

    async def transact(self, body: Callable[[_store.Transaction], _R], *, attempts: int | None = None) -> _R:
        """Does as `hikv.Store.transact`. `body` is a plain function that runs on a thread of the store. It does not begin
        again once the caller is cancelled."""
        cancelled = threading.Event()

        def unless_cancelled(tx: _store.Transaction) -> _R:
            if cancelled.is_set():
                raise asyncio.CancelledError
            return body(tx)

        def transact() -> _R:
            try:
                return self._whole.transact(unless_cancelled, attempts=attempts)
            except BaseException as error:
                _clear_frames(error)
                raise

        try:
            return await self._threads.run(transact)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    @contextlib.asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Snapshot]:
        """Yields the store as it is now, unaffected by later writes, until the end of `async with`."""
        snapshot = await self._threads.run(_store.Snapshot, self._whole)
        try:
            yield Snapshot(self._threads, snapshot)
        finally:
            # A thread may still read for a cancelled call.
            await self._threads.finish(snapshot.close)

    async def sync(self) -> None:
        """Makes every write that has returned as durable as the storage allows."""
        await self._threads.run(self._whole.sync)

    async def backup(self, place: str | os.PathLike[str]) -> None:
        """Copies the store to a new directory."""
        await self._threads.run(self._whole.backup, place)

    async def stats(self) -> dict[str, Any]:
        """Returns the store's figures by their names."""
        return await self._threads.run(self._whole.stats)

    @property
    def closed(self) -> bool:
        """True once the store is closed."""
        return self._whole.closed

    async def close(self) -> None:
        """Closes the store, after the calls that have started. Does nothing if it is closed."""
        await self._threads.end(self._whole.close)


class Snapshot(_Ranges):
    """A store, or a tree, as it was at one moment."""

    async def get(self, key: Buffer) -> bytes | None:
        """Returns the value, or `None`."""
        value: bytes | None = await self._threads.run(self._mapping.get, key)
        return value

    async def tree(self, name: str) -> Snapshot:
        """Returns the tree that had this name at the snapshot. Raises `NoSuchTree` if there was none."""
        return Snapshot(self._threads, await self._threads.run(self._mapping.tree, name))


class Batch(_hikv.Batch):
    """Changes that are applied as one step: `async with store.batch() as batch`."""

    def __init__(self, threads: _Threads, tree: _store.Tree) -> None:
        self._threads = threads
        self._target = tree

    def tree(self, tree: Tree) -> None:  # type: ignore[override]
        """Lets further changes apply to another tree."""
        super().tree(tree._tree)

    async def __aenter__(self) -> Batch:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            await self.write()
        else:
            self.clear()

    async def write(self) -> None:
        """Applies the changes now. The batch is empty afterwards."""
        await self._threads.run(self._target._write, self)


def _clear_frames(error: BaseException) -> None:
    """Takes the transaction out of an exception, which ends on the loop's thread: a transaction ends on its own thread."""
    found: BaseException | None = error
    while found is not None:
        traceback.clear_frames(found.__traceback__)
        found = found.__context__


@contextlib.asynccontextmanager
async def open(path: str | os.PathLike[str], *, threads: int = 16, **options: Any) -> AsyncIterator[Store]:
    """Opens a store until the end of `async with`. The options are those of `hikv.Store`; at most `threads` threads wait for
    disks at the same time."""
    own = _Threads(threads)
    opening = own.pool.submit(functools.partial(_store.Store, path, **options))
    try:
        store = Store(own, await asyncio.wrap_future(opening))
    except BaseException:
        # A cancelled opening goes on, and may succeed.
        opening.add_done_callback(functools.partial(_abandon, own.pool))
        raise
    try:
        yield store
    finally:
        await store.close()


def _abandon(pool: ThreadPoolExecutor, opening: Future[_store.Store]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        pool.submit(opening.result().close)
    pool.shutdown(wait=False)
