"""CPython's own tests of mappings, `dbm` and `shelve`, pointed at hikv."""

import dbm
import itertools
import os
import pathlib
import shelve
import tempfile
import unittest

import pytest

import hikv
import hikv.dbm
import hikv.shelf

# Some distributions of Python come without its tests.
mapping_tests = pytest.importorskip("test.mapping_tests")
cpython_dbm = pytest.importorskip("test.test_dbm")


class TestDbm(cpython_dbm.AnyDBMTestCase, unittest.TestCase):
    module = hikv.dbm

    def setUp(self):
        super().setUp()
        # `dbm.open` asks `whichdb`, which knows only the modules of the standard library.
        known = dbm.whichdb
        self.addCleanup(setattr, dbm, "whichdb", known)
        dbm.whichdb = lambda file: hikv.dbm.whichdb(file) or known(file)
        dbm._modules["hikv.dbm"] = hikv.dbm
        self.addCleanup(dbm._modules.pop, "hikv.dbm")
        self._dict = dict(self._dict)

    def test_errors_are_those_of_dbm(self):
        with tempfile.TemporaryDirectory() as place:
            with self.assertRaises(hikv.dbm.error):
                hikv.dbm.open(place + "/none", "w")
            with hikv.dbm.open(place + "/new", "c") as database:
                database["text"] = "value"
                self.assertEqual(database[b"text"], b"value")
                self.assertEqual([database.firstkey(), database.nextkey("text")], [b"text", None])
            with self.assertRaises(hikv.dbm.error):
                database.keys()
            with hikv.dbm.open(place + "/new") as database, self.assertRaises(hikv.dbm.error):
                database[b"a"] = b""
            with hikv.dbm.open(place + "/new", "n") as database:
                self.assertEqual(len(database), 0)
            with self.assertRaises(ValueError):
                hikv.dbm.open(place + "/new", "x")

    def test_new_databases_delete_nothing_of_others(self):
        with tempfile.TemporaryDirectory() as place:
            other, linked = pathlib.Path(place, "directory", "other"), pathlib.Path(place, "linked")
            other.parent.mkdir()
            other.write_text("other")
            linked.write_text("linked")
            os.symlink(linked, place + "/link")
            for name in ("directory", "link"):
                with hikv.dbm.open(f"{place}/{name}", "n", 0o666) as database:
                    self.assertEqual(database.keys(), [])
                self.assertEqual(os.stat(f"{place}/{name}/store.hikv").st_mode & 0o077, 0)
            self.assertEqual((other.read_text(), linked.read_text()), ("other", "linked"))


class ShelfBase:
    type2test = shelve.Shelf

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.paths = (os.path.join(place.name, str(number)) for number in itertools.count())

    def _reference(self):
        return {"key1": "value1", "key2": 2, "key3": (1, 2, 3)}

    def _empty_mapping(self):
        shelf = hikv.shelf.open(next(self.paths), durability="process", **self.arguments)
        self.addCleanup(shelf.close)
        return shelf


class TestShelf(ShelfBase, mapping_tests.BasicTestMappingProtocol):
    arguments = {}


class TestShelfWithWriteback(ShelfBase, mapping_tests.BasicTestMappingProtocol):
    arguments = {"writeback": True, "protocol": 2}


class TextStore(hikv.Store):
    """A store that encodes text: CPython's tests use it as keys."""

    def __setitem__(self, key, value):
        encoded = [part.encode() if isinstance(part, str) else part for part in (key, value)]
        super().__setitem__(*encoded)


class TestMapping(mapping_tests.BasicTestMappingProtocol):
    """The protocol of mappings, for stores themselves."""

    type2test = hikv.Store

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.paths = (os.path.join(place.name, str(number)) for number in itertools.count())

    def _reference(self):
        return {b"1": b"2", b"key1": b"value1", b"key2": b"(1,2,3)"}

    def _empty_mapping(self):
        store = TextStore(next(self.paths), durability="process")
        self.addCleanup(store.close)
        return store

    def test_constructor(self):
        self.assertEqual(self._empty_mapping(), self._empty_mapping())

    def test_items(self):
        # Unlike those of `dict`, the views take bounds.
        self.assertEqual(list(self._full_mapping(self._reference()).items(None)), sorted(self._reference().items()))

    def test_values(self):
        store = self._full_mapping(self._reference())
        self.assertEqual(list(store.values(None)), [store[key] for key in store])

    def test_get(self):
        # CPython's test wants a `TypeError` for a key of no type that exists here: any object is one for `dict`.
        store = self._full_mapping(self._reference())
        self.assertIsNone(store.get(b"other"))
        self.assertEqual(store.get(b"other", b"default"), b"default")
        self.assertEqual(store.get(b"key1"), b"value1")
        self.assertRaises(TypeError, store.get)
        self.assertRaises(TypeError, store.get, None, None, None)
