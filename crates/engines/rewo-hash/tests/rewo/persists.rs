//! Costs of operations: fences, and lines in addition to those of a large item.

use engine::prelude::*;
use engine_rewo_hash::RewoHash;
use pmem::{Counted, Counts, Medium};
use pmem_os::HostDram;
use pmem_sim::{Model, Sim};

use crate::splits::{first, key};
use crate::subject::PARAMETERS;

type Store = RewoHash<Counted<Sim>, HostDram>;

fn store(key_count: u32) -> Store {
    let store = RewoHash::format(Counted::new(Sim::new(0, Model::Line)), HostDram, &PARAMETERS).unwrap();
    (0..key_count).for_each(|i| store.put(&key(i), b"a value").unwrap());
    store
}

fn cost(store: &Store, work: impl FnOnce(&Store)) -> Counts {
    let before = store.medium().counts().unwrap();
    work(store);
    let after = store.medium().counts().unwrap();
    Counts {
        flushed_line_count: after.flushed_line_count - before.flushed_line_count,
        fence_count: after.fence_count - before.fence_count,
        streamed_bytes: after.streamed_bytes - before.streamed_bytes,
    }
}

#[test]
fn small_put_costs_two_fences_delete_one() {
    let store = store(100);
    for i in 0..100 {
        for work in
            [&(|store: &Store| store.put(&key(1000 + i), b"small").unwrap()) as &dyn Fn(&Store), &|store: &Store| {
                store.put(&key(i), b"another").unwrap()
            }]
        {
            let Counts { flushed_line_count, fence_count, streamed_bytes } = cost(&store, work);
            // The slot is in one line or two, and the meta word may be in another.
            assert!((2..=3).contains(&flushed_line_count), "{flushed_line_count}");
            assert_eq!((fence_count, streamed_bytes), (2, 0));
        }
        let deleted = cost(&store, |store| assert!(store.delete(&key(1000 + i)).unwrap()));
        assert_eq!(deleted, Counts { flushed_line_count: 1, fence_count: 1, streamed_bytes: 0 });
        let read = cost(&store, |store| assert!(store.get(&key(i), &mut |_, _, _| {}).unwrap()));
        assert_eq!(read, Counts { flushed_line_count: 0, fence_count: 0, streamed_bytes: 0 });
    }
}

#[test]
fn large_put_costs_its_item_besides() {
    let store = store(10);
    store.put(b"large", &[1; 256]).unwrap();
    for round in 0..50 {
        let Counts { flushed_line_count, fence_count, streamed_bytes } =
            cost(&store, |store| store.put(b"large", &[round; 256]).unwrap());
        assert_eq!((fence_count, streamed_bytes), (2, 16 + 5 + 256));
        assert!((5 + 2..=6 + 3).contains(&flushed_line_count), "{flushed_line_count}");
    }
}

#[test]
fn move_costs_fence_more() {
    let last = first("move_count");
    let store = store(last);
    let moving = cost(&store, |store| store.put(&key(last), b"a value").unwrap());
    assert_eq!((store.stats().figure("move_count"), moving.fence_count), (Some(1.0), 3));
}
