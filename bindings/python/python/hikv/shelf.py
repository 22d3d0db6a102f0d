"""A shelf of the standard library over a store: `hikv.shelf.open(path)`."""

from __future__ import annotations

import os
import shelve
from typing import Any

from ._store import Store

__all__ = ["open"]


def open(
    path: str | os.PathLike[str],
    *,
    protocol: int | None = None,
    writeback: bool = False,
    **options: Any,
) -> shelve.Shelf[Any]:
    """Returns a shelf, which maps text to any objects that can be pickled. `options` are those of `Store`. Values are
    unpickled when they are read: open no shelf that another user may have written."""
    return shelve.Shelf(Store(path, **options), protocol, writeback)
