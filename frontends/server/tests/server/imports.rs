//! Loading of dumps. Snapshots between two batches have the items that a crash at this moment would leave.

use std::io::{self, Read};

use hikv::{Options, Store};
use rdb::{FileReader, FileWriter, Kind};
use server::{Import, Imported, TransferError};

use crate::common::{TestServer, bulk, int};
use crate::shown::{Shown, TREE};

/// Enough for several batches, in a set and in a sorted set.
const COUNT: usize = 30_000;
/// The number of bytes between two looks at the store.
const PIECE_BYTES: usize = 16 << 10;

/// A dump with a string, a set and a sorted set.
fn dump() -> Vec<u8> {
    let mut writer = FileWriter::new(Vec::new(), &[]).expect("memory takes it");
    writer.begin(0, b"text", Kind::String, None).and_then(|()| writer.write(b"\x01x")).expect("memory takes it");
    for kind in [Kind::Set, Kind::SortedSet] {
        let mut value = Vec::new();
        rdb::put_length(&mut value, COUNT as u64);
        for number in 0..COUNT {
            rdb::put_string(&mut value, format!("m{number}").as_bytes());
            if kind == Kind::SortedSet {
                rdb::put_score(&mut value, number as f64);
            }
        }
        let key: &[u8] = if kind == Kind::Set { b"s" } else { b"z" };
        writer
            .begin(0, key, kind, Some(4_102_444_800_000))
            .and_then(|()| writer.write(&value))
            .expect("memory takes it");
    }
    writer.finish().expect("memory takes it")
}

/// A dump that is read in pieces; after each piece `look` sees the store.
struct Pieces<'a, F> {
    rest: &'a [u8],
    piece_bytes: usize,
    look: F,
}

impl<F: FnMut() -> io::Result<()>> Read for Pieces<'_, F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.piece_bytes >= PIECE_BYTES {
            self.piece_bytes = 0;
            (self.look)()?;
        }
        let read_bytes = self.rest.read(buffer)?;
        self.piece_bytes += read_bytes;
        Ok(read_bytes)
    }
}

/// Loads a dump; calls `look` again and again.
fn load(store: &Store, dump: &[u8], look: impl FnMut() -> io::Result<()>) -> Result<Vec<Imported>, TransferError> {
    let import = Import::of(store).expect("it begins");
    let (mut reader, mut outcomes) =
        (FileReader::new(Pieces { rest: dump, piece_bytes: 0, look }, 1 << 20)?, Vec::new());
    while let Some(entry) = reader.next_entry()? {
        outcomes.push(import.put(&mut reader, &entry)?);
    }
    Ok(outcomes)
}

/// Returns the invariants of the collections, once there are any, and the number of elements that are dead.
fn shown(store: &Store) -> Option<Shown> {
    let has_tree = store.trees().expect("it is read").iter().any(|tree| tree.name == TREE);
    has_tree.then(|| Shown::of(&store.snapshot().expect("it is taken")))
}

#[test]
fn invariants_hold_throughout_a_load() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = Options::new().open(dir.path()).expect("it opens");
    let (dump, mut dead_count) = (dump(), 0);
    for _ in 0..2 {
        let outcomes = load(&store, &dump, || {
            if let Some(shown) = shown(&store) {
                assert_eq!(shown.violation(), None);
                dead_count += u32::from(shown.dead_elements() > 0);
            }
            Ok(())
        });
        assert_eq!(outcomes.expect("it is loaded"), [Imported::Stored; 3]);
    }
    assert!(dead_count > 10, "a crash would leave elements of no record only {dead_count} times");
    assert_eq!(shown(&store).and_then(|shown| shown.violation()), None);
}

/// Broken variant: a loader that does not call its elements dead.
#[test]
fn elements_without_their_row_are_noticed() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = Options::new().open(dir.path()).expect("it opens");
    let mut is_noticed = false;
    let outcomes = load(&store, &dump(), || {
        if let Some(shown) = shown(&store)
            && shown.dead_elements() > 0
        {
            let tree = store.existing_tree(TREE).expect("it is found").expect("there is the tree");
            let row = tree.ordered().expect("there is an order").prefix([3]).expect("it is read").next();
            let (row, _) = row.expect("there is one").expect("it is read");
            assert!(tree.delete(row).expect("it is deleted"));
            is_noticed = Shown::of(&store.snapshot().expect("it is taken")).violation().is_some();
            return Err(io::Error::other("the loader ends"));
        }
        Ok(())
    });
    assert!(outcomes.is_err() && is_noticed);
}

#[test]
fn keys_after_too_long_strings_are_loaded() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = Options::new().open(dir.path()).expect("it opens");
    let file = [
        &b"REDIS0010"[..],
        b"\x00\x01a\x0Babcdefghijk",          // A string of 11 bytes.
        b"\x02\x01b\x02\x01x\x0Babcdefghijk", // A set with such a member.
        b"\x00\x01c\x01v\xFF",
        &[0; 8],
    ];
    let file = file.concat();
    let import = Import::of(&store).expect("it begins");
    let mut reader = FileReader::new(&file[..], 10).expect("a file");
    let mut refused = Vec::new();
    while let Some(entry) = reader.next_entry().expect("it is read") {
        if let Err(error) = import.put(&mut reader, &entry) {
            assert!(matches!(&error, TransferError::Refused(text) if text.contains("11 bytes")), "{error}");
            refused.push(entry.key);
        }
    }
    assert_eq!(refused, [b"a", b"b"]);
    drop(import);
    store.close().expect("it closes");
    let server = TestServer::at_dir(dir);
    server.client().converse([("EXISTS a b", int(0)), ("GET c", bulk("v"))]);
}

#[test]
fn next_server_deletes_interrupted_loads() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = Options::new().open(dir.path()).expect("it opens");
    let mut poll_count = 0;
    let outcomes = load(&store, &dump(), || {
        poll_count += u32::from(shown(&store).is_some_and(|shown| shown.dead_elements() > 0));
        if poll_count > 3 { Err(io::Error::other("the disk is gone")) } else { Ok(()) }
    });
    assert!(matches!(outcomes, Err(TransferError::Dump(rdb::Error::Input(_)))));
    let before = shown(&store).expect("there is the tree");
    assert!(before.dead_elements() > 1000 && before.violation().is_none());
    store.close().expect("it closes");
    let server = TestServer::at_dir(dir);
    server.client().converse([("GET text", bulk("x")), ("EXISTS s z", int(0))]);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while shown(&server.store).is_some_and(|shown| shown.dead_elements() > 0) {
        assert!(std::time::Instant::now() < deadline, "dead elements should go");
    }
}
