//! A few items from an end of a range, found without an ordered index, equal those of the index.

use hikv::{Durability, Item, Options, Store, prefix_range};

fn key(number: u32) -> Vec<u8> {
    // Scattered keys, which no pass visits in order.
    format!("{:08x}", number.wrapping_mul(0x9E37_79B1)).into_bytes()
}

fn filled(options: &Options) -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = options.clone().durability(Durability::Buffered).open(dir.path()).unwrap();
    (0..5_000).for_each(|number| store.put(key(number), number.to_be_bytes()).unwrap());
    (0..5_000).step_by(3).for_each(|number| assert!(store.delete(key(number)).unwrap()));
    (dir, store)
}

fn order_of(store: &Store) -> &'static str {
    store.stats().order
}

#[test]
fn pass_finds_order_without_building() {
    let (_dir, store) = filled(&Options::new());
    let ranges =
        [prefix_range(""), prefix_range("8"), (prefix_range("7").0, prefix_range("9").1), prefix_range("none")];
    let few = |count| ranges.each_ref().map(|range| few(&store, range, count));
    let passed = [0, 1, 2, 100, 1_000].map(few);
    assert_eq!(order_of(&store), "off");
    let ordered = store.ordered().unwrap();
    for (count, passed) in [0, 1, 2, 100, 1_000].into_iter().zip(passed) {
        for (range, (first, last)) in ranges.iter().zip(passed) {
            let items = || ordered.range(range.clone()).unwrap();
            assert_eq!(first, items().take(count).collect::<Result<Vec<_>, _>>().unwrap());
            assert_eq!(last, items().rev().take(count).collect::<Result<Vec<_>, _>>().unwrap());
        }
    }
    assert_eq!(order_of(&store), "ready");
    assert_eq!(few(3)[0], (store.first_items::<&[u8]>(.., 3).unwrap(), store.last_items::<&[u8]>(.., 3).unwrap()));
}

type Ends = (std::ops::Bound<Vec<u8>>, std::ops::Bound<Vec<u8>>);

fn few(store: &Store, range: &Ends, count: usize) -> (Vec<Item>, Vec<Item>) {
    (store.first_items(range.clone(), count).unwrap(), store.last_items(range.clone(), count).unwrap())
}

#[test]
fn many_items_have_the_order_built() {
    let (_dir, store) = filled(&Options::new());
    assert_eq!(store.first_items::<&[u8]>(.., 1_001).unwrap().len(), 1_001);
    assert_eq!(order_of(&store), "ready");
}

#[test]
fn store_without_order_has_few() {
    let (_dir, store) = filled(&Options::new().ordered(false));
    let first = store.first_items::<&[u8]>(.., 10).unwrap();
    assert!(first.len() == 10 && first.is_sorted());
}
