"""Stores, trees, snapshots, batches and transactions."""

from __future__ import annotations

import json
import os
import random
import threading
import time
import warnings
from collections.abc import Callable, MutableMapping
from types import TracebackType
from typing import Any, Self, TypeVar

from . import _hikv
from ._errors import Conflict, Contended, Error
from ._mapping import Buffer, Reading

R = TypeVar("R")

# The longest pause between two attempts of a transaction, in seconds.
_PAUSE_MAX = 0.001
_PAUSE_MIN = 0.000005


class _Body(threading.local):
    """Whether the thread is in the body of a transaction."""

    is_running = False


_body = _Body()


class Tree(_hikv.Tree, Reading, MutableMapping[bytes, bytes]):
    """A tree of keys: a mapping of bytes to bytes. Keys and values may be any objects with the buffer protocol."""

    __slots__ = ()

    def modify(self, key: Buffer, f: Callable[[bytes | None], Buffer | None]) -> bytes | None:
        """Sets the key to the result of `f` for its present value, in one step, and returns the result. `None` stands
        for an absent key. `f` runs again if another thread changes the key meanwhile."""
        while True:
            old = self.get(key)
            result = f(old)
            new = None if result is None else bytes(result)
            if self.compare_and_swap(key, old, new):
                return new

    def batch(self) -> Batch:
        """Returns a batch for `with`: its changes are applied as one step at the end, and discarded after an exception.
        It applies to this tree, or to those of `Batch.tree`."""
        return Batch(self)

    def __repr__(self) -> str:
        return f"<hikv.Tree {self.name!r}>"


class Closing:
    """A resource that is closed at the end of `with`."""

    __slots__ = ()

    def close(self) -> None:
        """Closes it."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


class Store(_hikv.Store, Tree, Closing):
    """An open store, and the tree of its keys without a name. Any number of threads may use it."""

    def __new__(
        cls,
        path: str | os.PathLike[str],
        *,
        engine: str | None = None,
        create: bool = True,
        read_only: bool = False,
        durability: str | None = None,
        ordered: bool = True,
        region_bytes_max: int | None = None,
        log_bytes_max: int | None = None,
        read_cache_bytes: int = 0,
        sync_interval: float | None = None,
        background_threads: int | None = None,
    ) -> Self:
        arguments = {
            "engine": engine,
            "create": create,
            "read_only": read_only,
            "durability": durability,
            "ordered": ordered,
            "region_bytes_max": region_bytes_max,
            "log_bytes_max": log_bytes_max,
            "read_cache_bytes": read_cache_bytes,
            "sync_interval": sync_interval,
            "background_threads": background_threads,
        }
        return super().__new__(cls, path, arguments)

    def __del__(self) -> None:
        if not self.closed:
            warnings.warn(f"{self!r} was left open", ResourceWarning, source=self, stacklevel=2)
            self.close()

    def __repr__(self) -> str:
        return "<hikv.Store, closed>" if self.closed else f"<hikv.Store {str(self.path)!r}>"

    def stats(self) -> dict[str, Any]:
        """Returns the store's figures by their names."""
        stats: dict[str, Any] = json.loads(self._stats())
        return stats

    def snapshot(self) -> Snapshot:
        """Returns the store as it is now, unaffected by later writes."""
        return Snapshot(self)

    def tree(self, name: str, *, create: bool = True) -> Tree:
        """Returns the tree of this name, and creates it if there is none. Without `create`, raises `NoSuchTree`."""
        return Tree(self, name, create)

    def transact(self, body: Callable[[Transaction], R], *, attempts: int | None = None) -> R:
        """Runs `body` in a transaction, commits it, and returns the result of `body`. If another thread changes what
        `body` has read, nothing is written and `body` runs again, at most `attempts` times. An exception of `body`
        discards its changes. A body writes only through its argument, and passes on `hikv.Conflict`."""
        if _body.is_running:
            raise Error("the body of a transaction cannot begin another one")
        number = 0
        while True:
            number += 1
            tx = Transaction(self)
            try:
                _body.is_running = True
                try:
                    result = body(tx)
                finally:
                    _body.is_running = False
                tx._commit()
                return result
            except Conflict:
                if attempts is not None and number >= attempts:
                    raise Contended(f"the transaction was tried {number} times") from None
            finally:
                tx._abort()
            time.sleep(random.uniform(0, min(_PAUSE_MAX, _PAUSE_MIN * (1 << min(number, 10)))))


class Snapshot(_hikv.Snapshot, Reading, Closing):
    """A store, or a tree, as it was at one moment: a mapping that never changes."""

    __slots__ = ()

    def tree(self, name: str) -> Snapshot:
        """Returns the tree that had this name at the snapshot. Raises `NoSuchTree` if there was none."""
        return Snapshot(self, name)


class Transaction(_hikv.Transaction):
    """A transaction: its reads and changes happen at one moment. `Store.transact` makes it, and one thread uses it."""

    __slots__ = ()


class Batch(_hikv.Batch):
    """Changes that are applied as one step: `with store.batch() as batch`."""

    __slots__ = ("_target",)

    def __init__(self, target: Tree) -> None:
        self._target = target

    def __enter__(self) -> Batch:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.write()
        else:
            self.clear()

    def write(self) -> None:
        """Applies the changes now. The batch is empty afterwards."""
        self._target._write(self)
