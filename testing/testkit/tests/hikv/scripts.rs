//! The scripts that are run on HiKV while it is crashed.

use std::ops::Range;

use engine::Engine;
use pmem_sim::{Model, Sim};
use testkit::{Op, Operations, Script, Shape, Subject};

use crate::subject::{Crashed, REGION_BYTES};

/// Larger than the largest size class: an extent.
pub(crate) const EXTENT_BYTES: usize = 300_000;

pub(crate) fn new_store<S: Subject<Medium = Sim>>() -> S {
    S::format(Sim::new(REGION_BYTES, Model::Line)).expect("the region is large enough")
}

pub(crate) fn put(key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Op {
    Op::Put(key.as_ref().to_vec(), value.as_ref().to_vec())
}

pub(crate) fn delete(key: impl AsRef<[u8]>) -> Op {
    Op::Delete(key.as_ref().to_vec())
}

pub(crate) fn multi_put<K: AsRef<[u8]>, V: AsRef<[u8]>>(items: impl IntoIterator<Item = (K, V)>) -> Op {
    Op::MultiPut(items.into_iter().map(|(key, value)| (key.as_ref().to_vec(), value.as_ref().to_vec())).collect())
}

/// Puts of several keys in one call: of new keys, of existing keys, and of one key twice.
pub(crate) fn several_at_once() -> Script {
    let ops = [
        multi_put([("a", "1"), ("b", "2"), ("c", "3")]),
        multi_put([("c", "4"), ("a", ""), ("c", "5")]),
        multi_put([("b", &"6".repeat(100)[..]), ("d", "7")]),
    ];
    Script::fresh(60, ops)
}

fn cas(key: &str, expected: Option<&str>, new: Option<&str>) -> Op {
    let [expected, new] = [expected, new].map(|value| value.map(Vec::from));
    Op::Cas { key: key.into(), expected, new }
}

/// Conditional writes, some of which take effect, of keys that exist and of keys that do not.
pub(crate) fn compared() -> Vec<Script> {
    let ops = [
        cas("a", Some("1"), Some("2")),
        cas("a", None, Some("1")),
        cas("a", None, Some("2")),
        cas("a", Some("1"), Some(&"3".repeat(100))),
        cas("a", Some("1"), None),
        delete("a"),
        cas("a", None, Some("4")),
        cas("a", Some("4"), None),
        cas("a", None, None),
    ];
    let shape = Shape { swaps: true, ..Shape::small(10) };
    [Script::fresh(70, ops)].into_iter().chain((71..73).map(|seed| Script::seeded(seed, &shape))).collect()
}

fn put_until(key: &str, value: impl AsRef<[u8]>, at_ms: u64) -> Op {
    Op::PutExpiring(key.into(), value.as_ref().to_vec(), at_ms)
}

/// Keys that expire, get other expiry times, are put again in time or too late, and are reaped, with restarts in
/// between.
pub(crate) fn expiring() -> Vec<Script> {
    let expire = |key: &str, at_ms| Op::Expire(key.into(), at_ms);
    let written = [
        put("a", "1"),
        put_until("b", "2", 3000),
        expire("a", Some(2000)),
        put_until("c", [3; 100], 2000),
        Op::At(2000),
        put("c", "4"),
        cas("a", None, Some("5")),
        Op::Settle,
        expire("b", None),
        put_until("d", "6", 4000),
        Op::Reopen,
        expire("d", Some(5000)),
        Op::At(5000),
        delete("d"),
        expire("d", Some(9000)),
        Op::Settle,
        put_until("e", "7", 9000),
        Op::At(9000),
        Op::Reopen,
        Op::Settle,
        Op::Reopen,
    ];
    let reaped = [
        put_until("a", "1", 2000),
        put_until("b", vec![2; EXTENT_BYTES], 2000),
        put_until("c", "3", 4000),
        expire("b", Some(3000)),
        Op::At(3000),
        Op::Settle,
        put("b", "4"),
        Op::At(4000),
        put_until("c", "5", 6000),
        Op::Settle,
        Op::Clear,
    ];
    vec![Script::fresh(74, written), Script::fresh(75, reaped)]
}

/// Scans with expiring keys.
pub(crate) fn expiring_in_order() -> Script {
    let ops = [
        put_until("b", "1", 2000),
        put("a", "2"),
        put_until("c", "3", 3000),
        Op::Scan,
        Op::At(2000),
        Op::Scan,
        put_until("b", "4", 5000),
        Op::Settle,
        Op::At(3000),
        Op::Scan,
        Op::Settle,
        Op::Scan,
        Op::Reopen,
        Op::Scan,
    ];
    Script::fresh(76, ops)
}

/// Writes while the store keeps an ordered index, and after it was reopened without one.
pub(crate) fn in_order() -> Vec<Script> {
    let written = [
        put("b", "1"),
        Op::Scan,
        put("b", "2"),
        put("a key that is longer than what travels in a queue", [3; 100]),
        multi_put([("c", "4"), ("b", "5"), ("c", "6")]),
        delete("b"),
        Op::Scan,
        Op::Clear,
        put("d", "7"),
        Op::Scan,
        Op::Reopen,
        put("d", "8"),
    ];
    [Script::fresh(61, written)].into_iter().chain(mixed(62..63)).collect()
}

/// Every kind of operation; the medium is never full.
pub(crate) fn mixed(seeds: Range<u64>) -> Vec<Script> {
    let shape = Shape {
        multi_puts: true,
        batches: true,
        swaps: true,
        scans: true,
        clears: true,
        reopens: true,
        ..Shape::small(12)
    };
    seeds.map(|seed| Script::seeded(seed, &shape)).collect()
}

/// Puts of several keys in one call, with space for only some of them.
pub(crate) fn several_where_it_is_full() -> Script {
    let several = |fill: u8| multi_put((0..5).map(|i| ([b'k', i], vec![fill; EXTENT_BYTES])));
    Script::after(31, [Op::Full, Op::Scan], [several(1), several(2), delete([b'k', 0]), several(3), put("small", "1")])
}

/// Puts, updates, deletes and re-inserts of few keys; values of no, one and several cache lines, and of an extent.
pub(crate) fn everyday() -> Vec<Script> {
    let written = [
        put("a", "1"),
        put("a", "2"),
        put("b", [7; 200]),
        delete("a"),
        put("a", "3"),
        put("", "the empty key"),
        put("b", ""),
        delete("b"),
        delete("b"),
    ];
    let seeded = (1..4).map(|seed| Script::seeded(seed, &Shape::small(10)));
    // The next extent uses a freed one's space immediately, and after a crash this must not look like a chunk.
    let replaced = [put("large", vec![1; EXTENT_BYTES]), put("large", vec![2; EXTENT_BYTES])];
    [Script::fresh(0, written), Script::fresh(4, replaced)].into_iter().chain(seeded).collect()
}

pub(crate) fn clears_and_reopens() -> Vec<Script> {
    let written = [
        put("a", "1"),
        put("b", "2"),
        Op::Reopen,
        put("c", "3"),
        put("a", "4"),
        Op::Clear,
        put("d", "5"),
        Op::Reopen,
        Op::Clear,
        put("e", "6"),
    ];
    let shape = Shape { clears: true, reopens: true, ..Shape::small(12) };
    [Script::fresh(10, written)].into_iter().chain((11..13).map(|seed| Script::seeded(seed, &shape))).collect()
}

/// Values that do not fit in the initial region.
pub(crate) fn growth() -> Script {
    let large = |fill: u8| vec![fill; EXTENT_BYTES];
    let ops = (0..6).map(|i| put([b'k', i], large(i)));
    Script::after(20, [put("small", "1")], ops.chain([put("small", "2"), delete([b'k', 1]), put("last", large(9))]))
}

/// The key's old item fills the only slot that becomes free in its chunk: a put that frees it too early overwrites it.
pub(crate) fn crowded_chunk() -> Script {
    const LARGE_SLOT_BYTES: usize = 200_000;
    let setup = (0..9).map(|i| put([b'k', i], [1; LARGE_SLOT_BYTES]));
    Script::after(50, setup, [put([b'k', 8], [2; LARGE_SLOT_BYTES])])
}

pub(crate) fn full_and_not_full() -> Vec<Script> {
    let large = |fill: u8| vec![fill; EXTENT_BYTES];
    let ops = (0..7).map(|i| put([b'k', i], large(i)));
    let tail = [put("small", "1"), delete([b'k', 0]), put("again", large(8)), Op::NotFull, put("after", large(9))];
    vec![Script::after(30, [Op::Full], ops.chain(tail))]
}

/// The puts that bring a new store to the point where the next one splits a segment.
pub(crate) fn up_to_a_split() -> Vec<Op> {
    let store: Crashed = new_store();
    let key = |i: u32| i.to_be_bytes();
    let count = (0..2000)
        .take_while(|&i| {
            store.put(&key(i), b"v").expect("there is space");
            store.0.stats().figure("split_count").unwrap() == 0.0
        })
        .count() as u32;
    assert!((400..1020).contains(&count), "a segment was split at {count} keys");
    (0..count).map(|i| put(key(i), "v")).collect()
}

/// The puts before a split, the one that splits, and some after it.
pub(crate) fn around_a_split() -> Script {
    let setup = up_to_a_split();
    let next = setup.len() as u32;
    let tail =
        [put(next.to_be_bytes(), "v"), put(0u32.to_be_bytes(), "w"), delete(1u32.to_be_bytes()), put("new", "1")];
    Script::after(40, setup, tail)
}

/// The same, and a restart, after which free space is found again and used.
pub(crate) fn reopened_after_a_split() -> Script {
    let mut setup = up_to_a_split();
    let next = setup.len() as u32;
    setup.push(put(next.to_be_bytes(), "v"));
    let tail = [
        Op::Reopen,
        put(0u32.to_be_bytes(), "w"),
        delete(1u32.to_be_bytes()),
        put(2u32.to_be_bytes(), "x"),
        put("new", "1"),
    ];
    Script::after(41, setup, tail)
}
