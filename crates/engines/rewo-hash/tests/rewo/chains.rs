//! More keys of one signature than two buckets hold: segments are chained, because no split would separate the keys.

use epoch::Limbo;
use heap::{EngineNumber, Heap, HeapError};
use index::BlockHash;
use index::block_hash::{Key, Slot};
use index::segmented::layout::Geometry;
use index::segmented::{Context, Cursor};
use pmem::MediumError;
use pmem_os::HostDram;
use pmem_sim::{Model, Sim};

use crate::subject::PARAMETERS;

const SIGNATURE: u64 = 0x1234_5678_9ABC_DEF0;
const KEY_COUNT: u32 = 40;

fn key(bytes: &[u8]) -> Key<'_> {
    Key { bytes, signature: SIGNATURE }
}

fn put(table: &BlockHash, cx: Context<'_, Sim, HostDram>, bytes: &[u8], value: &[u8]) {
    let slot = Slot::whole(bytes, value).unwrap();
    let _pin = epoch::pin();
    loop {
        let buckets = table.lock(cx, SIGNATURE);
        let found = buckets.find(key(bytes), |_| Ok::<_, HeapError>(false)).unwrap();
        let done = match found {
            Some(old) => Ok(buckets.replace(&old, &slot)),
            None => buckets.insert(&slot),
        };
        match done {
            Ok(published) => return published.settle(cx.medium).unwrap(),
            Err(full) => table.split(cx, SIGNATURE, full).unwrap(),
        }
    }
}

fn holds(table: &BlockHash, medium: &Sim, expected: impl Fn(u32) -> Option<Vec<u8>>) {
    for i in 0..KEY_COUNT {
        let name = format!("key {i}");
        let found = table.find(medium, key(name.as_bytes()), |_| Ok::<_, MediumError>(false)).unwrap();
        assert_eq!(found, expected(i).map(|value| Slot::whole(name.as_bytes(), &value).unwrap()), "{name}");
    }
}

#[test]
fn keys_of_one_signature_stay_chained() {
    let (medium, limbo) = (Sim::new(0, Model::Line), Limbo::default());
    let heap = Heap::format(&medium, EngineNumber::REWO_HASH, &PARAMETERS, HostDram).unwrap();
    let (geometry, sign) = (Geometry::new(1).unwrap(), || Box::new(|_: &[u8]| SIGNATURE));
    let table = BlockHash::format(&medium, &heap, geometry, sign()).unwrap();
    heap.region().finish_format(&medium).unwrap();
    let cx = Context { medium: &medium, heap: &heap, limbo: &limbo };
    for round in 0..3u8 {
        (0..KEY_COUNT).for_each(|i| put(&table, cx, format!("key {i}").as_bytes(), &[round; 5]));
    }
    let (split_count, chained_count) = table.split_counts();
    assert_eq!((split_count, chained_count, table.len()), (0, 2, KEY_COUNT.into()));
    holds(&table, &medium, |_| Some(vec![2; 5]));
    for i in (0..KEY_COUNT).step_by(2) {
        let _pin = epoch::pin();
        let name = format!("key {i}");
        let buckets = table.lock(cx, SIGNATURE);
        let found = buckets.find(key(name.as_bytes()), |_| Ok::<_, HeapError>(false)).unwrap().unwrap();
        buckets.remove(&found).settle(&medium).unwrap();
    }
    let expected = |i| (i % 2 == 1).then(|| vec![2; 5]);
    holds(&table, &medium, expected);
    drop((table, heap));
    let heap = Heap::open(&medium, EngineNumber::REWO_HASH, HostDram).unwrap();
    let cx = Context { medium: &medium, heap: &heap, limbo: &limbo };
    let table = BlockHash::open(cx, geometry, sign()).unwrap();
    holds(&table, &medium, expected);
    let next = table.sweep(cx, Cursor::default(), &mut |wrong| panic!("{wrong:?}")).unwrap();
    assert!(next.is_done());
    heap.sweep().finish(&medium);
    assert_eq!(table.len(), u64::from(KEY_COUNT) / 2);
    assert_eq!(heap.stats().live_bytes, 3 * heap::layout::SEGMENT_BYTES, "the chain is the table's");
    (0..KEY_COUNT).for_each(|i| put(&table, cx, format!("key {i}").as_bytes(), b"again"));
    assert_eq!(table.split_counts().1, 0, "there was space in the chain");
}
