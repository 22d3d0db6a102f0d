//! Walks during writes: an unchanged key is returned once, however segments split and items move.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use engine::prelude::*;
use engine::{BatchOp, Cursor};
use engine_rewo_hash::RewoHash;
use pmem_os::HostDram;
use pmem_sim::{Model, Sim};

use crate::splits::key;
use crate::subject::PARAMETERS;

const STAYING: u32 = 300;

#[test]
fn walk_during_splits_shows_items_once() {
    let store = RewoHash::format(Sim::new(0, Model::Span), HostDram, &PARAMETERS).unwrap();
    (0..STAYING).for_each(|i| store.put(&key(i), &vec![7; (i % 40) as usize]).unwrap());
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for i in STAYING..4000 {
                store.put(&key(i), b"passing").unwrap();
                if i % 50 == 0 {
                    let keys: Vec<_> = (i..i + 20).map(key).collect();
                    let ops: Vec<_> = keys.iter().map(|key| BatchOp::Delete { key }).collect();
                    store.write_batch(&ops).unwrap();
                }
            }
            done.store(true, Ordering::Release);
        });
        let mut is_last = false;
        while !is_last {
            is_last = done.load(Ordering::Acquire);
            let (mut counts, mut cursor) = (BTreeMap::new(), Cursor::Start);
            while cursor != Cursor::End {
                cursor = store.walk(cursor, &mut |key, _, _| *counts.entry(key.to_vec()).or_insert(0) += 1).unwrap();
            }
            assert!((0..STAYING).all(|i| counts.get(&key(i)) == Some(&1)));
        }
    });
    assert!(store.stats().figure("split_count").unwrap() > 4.0);
}
