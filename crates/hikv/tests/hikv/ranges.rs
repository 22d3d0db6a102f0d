//! The keys of ranges and prefixes, and the number of items copied ahead.

use std::ops::Bound;

use hikv::{Durability, Options, Ordered, Range, Store};

fn ordered(store: &Store) -> Ordered {
    let ordered = store.ordered().unwrap();
    ordered.wait_until_ready(|_| {}).unwrap();
    ordered
}

#[test]
fn prefix_ends_at_first_other_key() {
    const KEYS: [&[u8]; 9] =
        [b"a", b"a\xFE\xFF", b"a\xFF", b"a\xFF\0", b"a\xFF\xFF\xFF", b"ab", b"b", b"\xFF", b"\xFF\xFF\xFF"];
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    KEYS.iter().for_each(|key| store.put(key, "").unwrap());
    let ordered = ordered(&store);
    for prefix in [&b"a"[..], b"ab", b"a\xFF", b"a\xFF\xFF", b"\xFF\xFF", b"\xFF\xFF\xFF\xFF", b""] {
        let found: Vec<_> = ordered.prefix(prefix).unwrap().map(|item| item.unwrap().0).collect();
        let mut wanted: Vec<_> = KEYS.iter().filter(|key| key.starts_with(prefix)).collect();
        wanted.sort();
        assert_eq!(
            found.iter().map(|key| &key[..]).collect::<Vec<_>>(),
            wanted.into_iter().copied().collect::<Vec<_>>()
        );
    }
}

#[test]
fn impossible_ranges_are_empty() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    ["a", "b"].iter().for_each(|key| store.put(key, "").unwrap());
    let ordered = ordered(&store);
    let excluding_the_first = (Bound::Excluded("a"), Bound::Included("a"));
    let counts = [ordered.range("b".."a"), ordered.range("a".."a"), ordered.range::<&str>(excluding_the_first)];
    assert_eq!(counts.map(|range| range.unwrap().count()), [0; 3]);
    assert_eq!(ordered.range("a"..="a").unwrap().count(), 1);
    assert_eq!(ordered.iter().unwrap().count(), 2);
}

const ITEM_COUNT: u32 = 300;
const VALUE_BYTES: usize = 96;
const OLD: u8 = 7;
const NEW: u8 = 9;

fn put_all(store: &Store, byte: u8) {
    let items: Vec<_> = (0..ITEM_COUNT).map(|number| (number.to_be_bytes(), [byte; VALUE_BYTES])).collect();
    store.multi_put(items.iter().copied()).unwrap();
    // An ordered operation applies all changes first.
    assert_eq!(ordered(store).first().unwrap().unwrap().1[0], byte);
}

/// Returns how many more items a range has copied for a caller that took `taken_count`.
fn copied_ahead(store: &Store, taken_count: usize, next: fn(&mut Range) -> Option<Vec<u8>>) -> usize {
    put_all(store, OLD);
    let mut range = ordered(store).iter().unwrap();
    assert!((0..taken_count).all(|_| next(&mut range).unwrap()[0] == OLD));
    put_all(store, NEW);
    std::iter::from_fn(|| next(&mut range)).take_while(|value| value[0] == OLD).count()
}

#[test]
fn range_copies_more_as_it_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let store = Options::new().durability(Durability::Buffered).open(dir.path().join("store")).unwrap();
    let forward = |range: &mut Range| range.next().map(|item| item.unwrap().1);
    let backward = |range: &mut Range| range.next_back().map(|item| item.unwrap().1);
    for next in [forward as fn(&mut Range) -> Option<Vec<u8>>, backward] {
        let after_one = copied_ahead(&store, 1, next);
        assert!(after_one < 2048 / VALUE_BYTES, "{after_one} were copied ahead for one");
        let most = (1..ITEM_COUNT as usize).step_by(5).map(|taken| copied_ahead(&store, taken, next)).max().unwrap();
        assert!(most > 2 * after_one, "at most {most} were copied ahead for all, {after_one} for one");
    }
}

#[test]
fn references_and_keys_meet_from_both_ends() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let items: Vec<_> = (0..1_000u32).map(|i| (i.to_be_bytes(), [i as u8; 96])).collect();
    store.multi_put(items.iter().copied()).unwrap();
    let ordered = store.ordered().unwrap();
    let (mut range, mut front, mut back) = (ordered.iter().unwrap(), Vec::new(), Vec::new());
    while let Some((key, value)) = range.next_ref().unwrap() {
        front.push((key.to_vec(), value.to_vec()));
        // One of three items comes from the end.
        if front.len() % 2 == 0
            && let Some((key, value)) = range.next_back_ref().unwrap()
        {
            back.push((key.to_vec(), value.to_vec()));
        }
    }
    assert!(range.next_back_ref().unwrap().is_none() && range.next().is_none());
    front.extend(back.into_iter().rev());
    assert!(front.iter().map(|(key, value)| (&key[..], &value[..])).eq(items.iter().map(|(k, v)| (&k[..], &v[..]))));
    let keys = ordered.range([0, 0, 1]..[0, 0, 2]).unwrap().keys().rev().collect::<Result<Vec<_>, _>>().unwrap();
    assert!(keys.iter().eq(items[256..512].iter().rev().map(|(key, _)| key)));
}
