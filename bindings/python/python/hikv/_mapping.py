"""Views of ranges, and the part of a mapping that reads."""

from __future__ import annotations

import collections.abc
from collections.abc import Iterator, Mapping
from typing import Any, Protocol, TypeAlias

# Anything with the buffer protocol: `collections.abc.Buffer` since Python 3.12.
Buffer: TypeAlias = bytes | bytearray | memoryview


class _Ranges(Protocol):
    def _range(
        self,
        part: str,
        start: Buffer | None,
        stop: Buffer | None,
        prefix: Buffer | None,
        reverse: bool,
    ) -> Iterator[Any]: ...

    def _count(self, start: Buffer | None, stop: Buffer | None, prefix: Buffer | None) -> int: ...


class _View:
    """The keys, values or items of a range. Iterating reads the store's present items, page by page."""

    _part = ""

    def __init__(
        self,
        mapping: Any,
        start: Buffer | None,
        stop: Buffer | None,
        prefix: Buffer | None,
        reverse: bool,
    ) -> None:
        self._mapping = mapping
        self._ranges: _Ranges = mapping
        self._start = start
        self._stop = stop
        self._prefix = prefix
        self._reverse = reverse

    def __iter__(self) -> Iterator[Any]:
        return self._ranges._range(self._part, self._start, self._stop, self._prefix, self._reverse)

    def __reversed__(self) -> Iterator[Any]:
        return self._ranges._range(self._part, self._start, self._stop, self._prefix, not self._reverse)

    def __len__(self) -> int:
        if self._start is None and self._stop is None and self._prefix is None:
            return len(self._mapping)
        return self._ranges._count(self._start, self._stop, self._prefix)

    def _has(self, key: object) -> bool:
        if not isinstance(key, (bytes, bytearray, memoryview)):
            return False
        key = bytes(key)
        if self._prefix is not None and not key.startswith(bytes(self._prefix)):
            return False
        if self._start is not None and key < bytes(self._start):
            return False
        return self._stop is None or key < bytes(self._stop)


class KeysView(_View, collections.abc.KeysView[bytes]):
    """The keys of a range."""

    _part = "keys"

    def __contains__(self, key: object) -> bool:
        return self._has(key) and key in self._mapping


class ValuesView(_View, collections.abc.ValuesView[bytes]):
    """The values of a range."""

    _part = "values"

    def __contains__(self, value: object) -> bool:
        return any(value == found for found in self)


class ItemsView(_View, collections.abc.ItemsView[bytes, bytes]):
    """The items of a range."""

    _part = "items"

    def __contains__(self, item: object) -> bool:
        if not isinstance(item, tuple) or len(item) != 2 or not self._has(item[0]):
            return False
        return bool(self._mapping.get(item[0]) == item[1])


class Reading(Mapping[bytes, bytes]):
    """The functions of a mapping that read a range."""

    __slots__ = ()

    def keys(
        self,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        *,
        prefix: Buffer | None = None,
        reverse: bool = False,
    ) -> KeysView:
        """Returns a view of the keys from `start` on and below `stop`, or of those with a prefix, in their order."""
        return KeysView(self, start, stop, prefix, reverse)

    def values(
        self,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        *,
        prefix: Buffer | None = None,
        reverse: bool = False,
    ) -> ValuesView:
        """Returns a view of the values, as `keys` does of the keys."""
        return ValuesView(self, start, stop, prefix, reverse)

    def items(
        self,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        *,
        prefix: Buffer | None = None,
        reverse: bool = False,
    ) -> ItemsView:
        """Returns a view of the items, as `keys` does of the keys."""
        return ItemsView(self, start, stop, prefix, reverse)

    def __reversed__(self) -> Iterator[bytes]:
        return reversed(self.keys())
