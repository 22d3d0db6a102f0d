"""Stores for tests."""

import pathlib
from collections.abc import Iterator

import pytest

import hikv


@pytest.fixture
def store(tmp_path: pathlib.Path) -> Iterator[hikv.Store]:
    with hikv.Store(tmp_path / "store", durability="process") as store:
        yield store
