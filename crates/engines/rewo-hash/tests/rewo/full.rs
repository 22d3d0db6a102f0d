//! Writes that fail: what finds no room leaves nothing behind, and what is shown stays whole.

use engine::{BatchOp, Engine, Progress};
use engine_rewo_hash::RewoHash;
use heap::Parameters;
use pmem_os::HostDram;
use pmem_sim::{Model, Sim};

use crate::damaged::wrong;
use crate::hooked::{Hooked, failing};
use crate::splits::key;
use crate::subject::{PARAMETERS, needed_bytes};

/// Of all numbers of segments that a chunk has left, one is odd: a split then finds room for one half alone.
#[test]
fn a_split_that_finds_room_for_one_half_gives_it_back() {
    for partition_count in [1, 2, 4] {
        let (sim, parameters) = (Sim::new(0, Model::Span), Parameters { partition_count, ..PARAMETERS });
        let store = RewoHash::format(sim.clone(), HostDram, &parameters).unwrap();
        let mut full_count = 0;
        for i in 0..300_000 {
            sim.fail_grow_after(0);
            full_count += u32::from(store.put(&key(i), b"a value").is_err());
            if full_count > 20 {
                break;
            }
        }
        assert!(full_count > 20, "the region is larger than that");
        while store.tidy() == Progress::More || store.stats().garbage_count > 0 {}
        assert_eq!(store.stats().live_bytes, needed_bytes(&store));
    }
}

/// What is not known to be durable is visible all the same: its items keep their room.
#[test]
fn a_batch_whose_log_fails_keeps_the_room_of_what_it_shows() {
    let store = RewoHash::format(Hooked(Sim::new(0, Model::Span)), HostDram, &PARAMETERS).unwrap();
    let put = |key, value| BatchOp::Put { key, value };
    assert!(failing(|| store.write_batch(&[put(b"a", &[1; 40]), put(b"b", &[2; 40])])).is_err());
    assert_eq!(wrong(&store), Vec::<String>::new());
}
