//! Keys and values at their limits, and values that are read from a source.

use std::io::{self, Read};

use super::rig::Rig;
use engine::prelude::*;
use engine::{Error, Limits, Lookup};

const EXTENT_BYTES: usize = 300_000;

#[test]
fn empty_keys_and_values_are_stored() {
    let rig = Rig::new();
    rig.put(b"", b"");
    rig.put(b"a", b"");
    assert_eq!(rig.get(b"").unwrap(), Some(vec![]));
    rig.put(b"", b"something");
    assert_eq!((rig.get(b"").unwrap(), rig.get(b"a").unwrap()), (Some(b"something".to_vec()), Some(vec![])));
    assert!(rig.store.delete(b"").unwrap());
    assert_eq!((rig.get(b"").unwrap(), rig.get(b"a").unwrap()), (None, Some(vec![])));
}

#[test]
fn key_length_limit_holds_for_all_operations() {
    let rig = Rig::new();
    let longest = vec![7; Limits::KEY_BYTES_MAX];
    rig.put(&longest, b"value");
    rig.store.put_from(&longest, 5, &mut &b"again"[..]).unwrap();
    assert_eq!(rig.reopened().get(&longest).unwrap(), Some(b"again".to_vec()));
    let (rig, too_long) = (Rig::new(), vec![7; Limits::KEY_BYTES_MAX + 1]);
    let refused = [
        rig.store.put(&too_long, b"value").err(),
        rig.store.put_from(&too_long, 1, &mut &b"v"[..]).err(),
        rig.store.get(&too_long, &mut |_, _, _| {}).err(),
        rig.store.multi_get(&[b"a", &too_long], &mut |_, _| panic!("nothing is shown")).err(),
        rig.store.delete(&too_long).err(),
    ];
    let pin = epoch::pin();
    assert_eq!(rig.store.lookup(pin.pinned(), &too_long, &mut engine::empty_buffer()).unpack(), Lookup::Unsure);
    assert_eq!(rig.store.lookup_many(pin.pinned(), &[b"a", &too_long], &mut [None; 2]), 0);
    for error in refused {
        assert!(matches!(error, Some(Error::KeyTooLong { len_bytes: 65_536 })), "{error:?}");
    }
}

#[test]
fn value_over_gibibyte_is_refused_first() {
    let rig = Rig::new();
    let before = rig.store.stats();
    let len_bytes = Limits::VALUE_BYTES_MAX + 1;
    let mut unread = NeverRead;
    for error in [
        rig.store.put(b"key", &vec![0; len_bytes as usize]).err(),
        rig.store.put_from(b"key", len_bytes, &mut unread).err(),
        rig.store.put_from(b"key", u64::MAX, &mut unread).err(),
    ] {
        assert!(matches!(error, Some(Error::ValueTooLong { .. })), "{error:?}");
    }
    assert_eq!(rig.store.stats(), before);
}

struct NeverRead;

impl Read for NeverRead {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        panic!("the source must not be read")
    }
}

#[test]
fn empty_source_takes_no_space() {
    let rig = Rig::new();
    let before = rig.store.stats();
    let error = rig.store.put_from(b"key", Limits::VALUE_BYTES_MAX, &mut io::empty());
    assert!(matches!(error, Err(Error::Source(_))), "{error:?}");
    assert_eq!(rig.store.stats(), before);
}

#[test]
fn failing_source_keeps_old_value() {
    let rig = Rig::new();
    rig.put(b"key", b"old");
    let before = rig.store.stats();
    for promised in [1, 100, EXTENT_BYTES as u64] {
        for given in [promised / 2, promised - 1] {
            let error = rig.store.put_from(b"key", promised, &mut io::repeat(1).take(given));
            assert!(matches!(error, Err(Error::Source(_))), "{error:?}");
            let error = rig.store.put_from(b"key", promised, &mut io::repeat(1).take(given).chain(Failing));
            assert!(matches!(&error, Err(Error::Source(error)) if error.to_string() == "broken"), "{error:?}");
        }
    }
    assert_eq!(rig.get(b"key").unwrap(), Some(b"old".to_vec()));
    assert_eq!(rig.store.stats().live_bytes, before.live_bytes);
}

struct Failing;

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::other("broken"))
    }
}

#[test]
fn source_is_read_as_far_as_promised() {
    let rig = Rig::new();
    for len_bytes in [0, 1, 47, 48, 65_535, 65_536, 65_537, EXTENT_BYTES] {
        let value: Vec<u8> = (0..len_bytes).map(|i| (i % 251) as u8).collect();
        let mut source = value.chain(&b"the next request"[..]);
        rig.store.put_from(b"key", len_bytes as u64, &mut source).unwrap();
        assert_eq!(rig.get(b"key").unwrap(), Some(value.clone()));
        let mut rest = Vec::new();
        source.read_to_end(&mut rest).unwrap();
        assert_eq!(rest, b"the next request");
    }
    assert_eq!(rig.damage(), Vec::<String>::new());
}

#[test]
fn large_values_use_extents_and_free_them() {
    let rig = Rig::new();
    let live_bytes = rig.store.stats().live_bytes;
    for (key, fill) in [(b"a", 1), (b"b", 2), (b"a", 3)] {
        rig.put(key, &vec![fill; EXTENT_BYTES]);
        assert!(rig.position(key).place().is_some_and(|place| place.kind == heap::PlaceKind::Extent));
    }
    let rig = rig.reopened();
    assert_eq!(
        (rig.get(b"a").unwrap(), rig.get(b"b").unwrap()),
        (Some(vec![3; EXTENT_BYTES]), Some(vec![2; EXTENT_BYTES]))
    );
    assert_eq!((rig.store.len().unwrap(), rig.damage()), (2, vec![]));
    for key in [b"a", b"b"] {
        assert!(rig.store.delete(key).unwrap());
    }
    rig.free_garbage();
    assert_eq!(rig.store.stats().live_bytes, live_bytes);
}

#[test]
fn version_changes_with_value() {
    let rig = Rig::new();
    rig.put(b"key", b"one");
    let first = rig.version(b"key");
    rig.put(b"other", b"one");
    assert_eq!(rig.version(b"key"), first);
    rig.put(b"key", b"one");
    assert_ne!(rig.version(b"key"), first, "the old item is not free yet, so the new one is elsewhere");
    for round in 0..2000u32 {
        rig.put(b"key", &round.to_le_bytes());
        assert_ne!(rig.version(b"key"), first, "its place may return, its checksum does not");
    }
}
