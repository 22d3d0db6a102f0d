"""Stores with the interface of the standard library's `dbm`: `hikv.dbm.open(file, flag, mode)`."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any, TypeVar

from ._errors import Error
from ._mapping import Buffer
from ._store import Closing, Store

__all__ = ["Database", "error", "open", "whichdb"]

F = TypeVar("F", bound=Callable[..., Any])


class error(OSError):  # noqa: N801
    """Any error of a store; its cause is the `hikv.Error`."""


def _translated(function: F) -> F:
    """Raises errors of the store as errors of `dbm`."""

    @functools.wraps(function)
    def translated(*arguments: Any, **options: Any) -> Any:
        try:
            return function(*arguments, **options)
        except Error as cause:
            raise error(str(cause)) from cause

    return translated  # type: ignore[return-value]


def _encoded(text: str | Buffer) -> Buffer:
    return text.encode() if isinstance(text, str) else text


class Database(MutableMapping[bytes, bytes], Closing):
    """A store as a `dbm` object: text is encoded as UTF-8."""

    @_translated
    def __init__(self, path: str, *, create: bool, read_only: bool) -> None:
        self._store = Store(path, create=create, read_only=read_only)

    @_translated
    def __getitem__(self, key: str | Buffer) -> bytes:
        return self._store[_encoded(key)]

    @_translated
    def __setitem__(self, key: str | Buffer, value: str | Buffer) -> None:
        self._store[_encoded(key)] = _encoded(value)

    @_translated
    def __delitem__(self, key: str | Buffer) -> None:
        del self._store[_encoded(key)]

    @_translated
    def __contains__(self, key: object) -> bool:
        if not isinstance(key, (str, bytes, bytearray, memoryview)):
            return False
        return _encoded(key) in self._store

    @_translated
    def __iter__(self) -> Iterator[bytes]:
        return iter(self._store)

    @_translated
    def __len__(self) -> int:
        return len(self._store)

    @_translated
    def keys(self) -> list[bytes]:  # type: ignore[override]
        """Returns all keys, as a list."""
        return list(self._store)

    @_translated
    def firstkey(self) -> bytes | None:
        """Returns the least key."""
        return next(iter(self._store), None)

    @_translated
    def nextkey(self, key: str | Buffer) -> bytes | None:
        """Returns the key that follows this one."""
        keys = iter(self._store.keys(bytes(_encoded(key)) + b"\0"))
        return next(keys, None)

    @_translated
    def sync(self) -> None:
        """Makes every change durable."""
        self._store.sync()

    @_translated
    def reorganize(self) -> None:
        """Does nothing: a store gives space back in the background."""
        self.sync()

    @_translated
    def close(self) -> None:
        """Closes the store. Later operations raise an error."""
        self._store.close()


def open(
    file: str | bytes | os.PathLike[str] | os.PathLike[bytes],
    flag: str = "r",
    mode: int = 0o666,
) -> Database:
    """Opens a store. `flag` is 'r' (for reading), 'w', 'c' (created if it is missing) or 'n' (always new, empty).
    `mode` is ignored: the files of a store are for their owner."""
    if flag not in ("r", "w", "c", "n"):
        raise ValueError("flag must be 'r', 'w', 'c' or 'n'")
    path = os.fsdecode(file)
    if flag == "n" and os.path.isfile(path):
        os.remove(path)
    database = Database(path, create=flag in "cn", read_only=flag == "r")
    if flag == "n":
        database._store.clear()
    return database


def whichdb(file: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> str | None:
    """Returns 'hikv.dbm' for a store, and `None` if there is none."""
    return "hikv.dbm" if os.path.exists(os.path.join(os.fsdecode(file), "store.hikv")) else None
