//! A region that is full: what finds no room leaves nothing behind.

use engine::Engine;
use engine_rewo_hash::RewoHash;
use heap::Parameters;
use pmem_os::HostDram;
use pmem_sim::{Model, Sim};

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
        while store.tidy() == engine::Progress::More || store.stats().garbage_count > 0 {}
        assert_eq!(store.stats().live_bytes, needed_bytes(&store));
    }
}
