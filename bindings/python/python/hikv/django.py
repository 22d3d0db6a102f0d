"""A cache of Django in a store: `CACHES = {"default": {"BACKEND": "hikv.django.Cache", "LOCATION": "/var/cache/site"}}`.

`OPTIONS` are those of `hikv.Store`. One process has the store open, so this is for servers with threads. A server with several processes shares
`hikv serve` by Django's Redis backend instead. Values are pickled: nobody else may write to the directory.
"""

from __future__ import annotations

import atexit
import os
import pickle
import threading
from collections.abc import Iterable
from typing import Any

from django.core.cache.backends.base import (  # type: ignore[import-not-found, import-untyped, unused-ignore]
    DEFAULT_TIMEOUT,
    BaseCache,
)

from ._store import Store

_stores: dict[str, Store] = {}
_opening = threading.Lock()


def _store_at(path: str, options: dict[str, Any]) -> Store:
    """Returns the process's store at a path: each thread has its own cache object, and all share the store."""
    path = os.path.abspath(path)
    with _opening:
        store = _stores.get(path)
        if store is None or store.closed:
            store = Store(path, **{"durability": "process", **options})
            _stores[path] = store
        return store


@atexit.register
def _close_all() -> None:
    with _opening:
        while _stores:
            _stores.popitem()[1].close()


class Cache(BaseCache):  # type: ignore[misc, unused-ignore]
    """A cache whose entries survive a restart."""

    def __init__(self, location: str, params: dict[str, Any]) -> None:
        super().__init__(params)
        self._location = location
        self._options = params.get("OPTIONS", {})

    @property
    def _store(self) -> Store:
        return _store_at(self._location, self._options)

    def _key(self, key: str, version: int | None) -> bytes:
        made: str = self.make_and_validate_key(key, version=version)
        return made.encode()

    def _ttl(self, timeout: Any) -> float | None:
        timeout = self.default_timeout if timeout is DEFAULT_TIMEOUT else timeout
        return None if timeout is None else max(0, timeout)

    def add(self, key: str, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        return self._store.insert(self._key(key, version), _dumped(value), ttl=self._ttl(timeout))

    def get(self, key: str, default: Any = None, version: int | None = None) -> Any:
        value = self._store.get(self._key(key, version))
        return default if value is None else _loaded(value)

    def set(self, key: str, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> None:
        self._store.put(self._key(key, version), _dumped(value), ttl=self._ttl(timeout))

    def touch(self, key: str, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        return self._store.expire(self._key(key, version), self._ttl(timeout))

    def delete(self, key: str, version: int | None = None) -> bool:
        return self._store.delete(self._key(key, version))

    def get_many(self, keys: Iterable[str], version: int | None = None) -> dict[str, Any]:
        keys = list(keys)
        values = self._store.get_many([self._key(key, version) for key in keys])
        return {key: _loaded(value) for key, value in zip(keys, values, strict=True) if value is not None}

    def set_many(self, data: dict[str, Any], timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> list[str]:
        with self._store.batch() as batch:
            for key, value in data.items():
                batch.put(self._key(key, version), _dumped(value), ttl=self._ttl(timeout))
        return []

    def delete_many(self, keys: Iterable[str], version: int | None = None) -> None:
        with self._store.batch() as batch:
            for key in keys:
                batch.delete(self._key(key, version))

    def has_key(self, key: str, version: int | None = None) -> bool:
        return self._key(key, version) in self._store

    def incr(self, key: str, delta: int = 1, version: int | None = None) -> Any:
        stored = self._key(key, version)
        while True:
            old = self._store.get(stored)
            if old is None:
                raise ValueError(f"Key '{key}' not found")
            new = _loaded(old) + delta
            # The entry keeps its expiry.
            if self._store.compare_and_swap(stored, old, _dumped(new)):
                return new

    def clear(self) -> None:
        self._store.clear()


def _dumped(value: Any) -> bytes:
    # Most counters are small, and text is shorter than a pickle.
    return b"%d" % value if type(value) is int else pickle.dumps(value, pickle.HIGHEST_PROTOCOL)


def _loaded(data: bytes) -> Any:
    # A pickle of this protocol begins with a byte that no number has.
    return pickle.loads(data) if data[:1] == b"\x80" else int(data)
