//! A store whose bytes the tests read.

use engine::Progress;
use engine::prelude::*;
use engine_hikv::HiKv;
use heap::Parameters;
use pmem::{Bytes, Offset};
use pmem_os::HostDram;
use pmem_sim::{Model, Sim};

/// The parameters that the superblock must hold.
pub(crate) const PARAMETERS: Parameters = Parameters {
    uuid: [0xA0, 0xA1, 0xA2, 0xA3, 0xA4, 0xA5, 0xA6, 0xA7, 0xA8, 0xA9, 0xAA, 0xAB, 0xAC, 0xAD, 0xAE, 0xAF],
    hash_seed: 0x1122_3344_5566_7788,
    partition_count: 4,
    region_bytes: 4 << 20,
};

/// The keys of [`Store::filled`], which split segments and fill lines.
pub(crate) const KEY_COUNT: u32 = 5_000;
/// An item of a class beyond small slabs, and one in an extent.
pub(crate) const LARGE_VALUE_BYTES: usize = 40_000;
pub(crate) const EXTENT_VALUE_BYTES: usize = 300_000;

/// HiKV on memory whose bytes can be read.
pub(crate) struct Store(pub(crate) HiKv<Sim, HostDram>);

impl Store {
    pub(crate) fn new(parameters: &Parameters) -> Store {
        let medium = Sim::new(parameters.region_bytes, Model::Line);
        Store(HiKv::format(medium, HostDram, parameters).expect("the region is fresh"))
    }

    /// Returns a store with chunks of every kind: slabs of small and large slots, segments, extents, and a free one.
    pub(crate) fn filled() -> Store {
        let store = Store::new(&PARAMETERS);
        for i in 0..KEY_COUNT {
            store.put(&key(i), &value(i));
        }
        store.put(b"large", &[1; LARGE_VALUE_BYTES]);
        store.put(b"to be free", &[2; EXTENT_VALUE_BYTES]);
        store.put(b"extent", &[3; EXTENT_VALUE_BYTES]);
        store.delete(b"to be free");
        store
    }

    pub(crate) fn put(&self, key: &[u8], value: &[u8]) {
        self.0.put(key, value).expect("there is space");
    }

    /// Deletes a key that exists, and frees its space.
    pub(crate) fn delete(&self, key: &[u8]) {
        assert!(self.0.delete(key).expect("the medium does not fail"));
        while self.0.step().expect("there is space") == Progress::More {}
        while self.0.stats().garbage_count > 0 {
            self.0.run_idle_maintenance();
        }
    }

    pub(crate) fn word(&self, at: u64) -> u64 {
        u64::from_le_bytes(self.bytes(at, 8).try_into().expect("eight bytes"))
    }

    pub(crate) fn bytes(&self, at: u64, len_bytes: u64) -> &[u8] {
        // SAFETY: the tests do not write while they read bytes.
        unsafe { self.0.medium().bytes(Offset(at).span(len_bytes)) }.expect("the documented place is in the region")
    }
}

pub(crate) fn key(i: u32) -> Vec<u8> {
    format!("key {i}").into_bytes()
}

/// Returns a value whose length depends on `i`, so that several size classes are used.
pub(crate) fn value(i: u32) -> Vec<u8> {
    vec![i as u8; (i % 700) as usize]
}
