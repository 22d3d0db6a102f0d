//! A store in a simulated region.

use std::collections::BTreeMap;

use pmem::{Counted, Counts, Medium};
use pmem_sim::{Model, Sim};

use super::super::{HiKv, Parameters};
use engine::prelude::*;
use engine::{Check, Cursor, Depth, Error, Lookup, Version, Witness, empty_buffer};
use index::Position;
use pmem_os::HostDram;

/// Head, a chunk of segments, and one of the largest chunks of items, with spare space.
pub(super) const REGION_BYTES: u64 = 5 << 20;

pub(super) type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

pub(super) struct Rig {
    pub(super) store: HiKv<Counted<Sim>, HostDram>,
}

impl Rig {
    pub(super) fn new() -> Rig {
        Rig::on(Sim::new(REGION_BYTES, Model::Line))
    }

    pub(super) fn on(sim: Sim) -> Rig {
        let parameters = Parameters { uuid: [7; 16], hash_seed: 7, partition_count: 1, region_bytes: REGION_BYTES };
        Rig { store: HiKv::format(Counted::new(sim), HostDram, &parameters).unwrap() }
    }

    /// A store whose region cannot grow.
    pub(super) fn of_fixed_size() -> Rig {
        let rig = Rig::new();
        rig.sim().fail_grow_after(0);
        rig
    }

    /// The same region, opened by another process.
    pub(super) fn reopened(self) -> Rig {
        let medium = self.sim().clone();
        drop(self);
        Rig { store: HiKv::open(Counted::new(medium), HostDram).unwrap() }
    }

    pub(super) fn sim(&self) -> &Sim {
        self.store.medium().inner()
    }

    pub(super) fn put(&self, key: &[u8], value: &[u8]) {
        self.store.put(key, value).unwrap();
    }

    pub(super) fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let mut copy = None;
        let found = self.store.get(key, &mut |_, _, value| copy = Some(value.to_vec()));
        let pin = epoch::pin();
        match self.store.lookup(pin.pinned(), key, &mut empty_buffer()).unpack() {
            Lookup::Value(value) => assert_eq!((found.as_ref().unwrap(), copy.as_deref()), (&true, Some(value))),
            Lookup::Absent => assert!(!found.as_ref().unwrap()),
            Lookup::Unsure => {}
        }
        assert_eq!(found?, copy.is_some());
        Ok(copy)
    }

    pub(super) fn version(&self, key: &[u8]) -> Version {
        self.version_and_witness(key).0
    }

    fn version_and_witness(&self, key: &[u8]) -> (Version, Witness) {
        let mut seen = None;
        self.store.get(key, &mut |witness, _, value| seen = Some((witness.version(key, value), witness))).unwrap();
        seen.expect("the key is there")
    }

    /// The position of the key's item.
    pub(super) fn position(&self, key: &[u8]) -> Position {
        Position::from_word(self.version_and_witness(key).1.words()[0])
    }

    pub(super) fn contents(&self) -> Contents {
        let (mut cursor, mut contents) = (Cursor::default(), Contents::new());
        while !cursor.is_done() {
            let mut each = |key: &[u8], value: &[u8], _| {
                assert_eq!(contents.insert(key.to_vec(), value.to_vec()), None, "a key was shown twice");
            };
            cursor = self.store.walk(cursor, &mut each).unwrap();
        }
        contents
    }

    /// The damage that the store's check reports.
    pub(super) fn damage(&self) -> Vec<String> {
        let (mut check, mut damage) = (Check::new(Depth::Deep), Vec::new());
        while !check.is_done() {
            let mut damaged = |found: engine::Damage| damage.push(format!("{:#x}: {}", found.offset, found.what));
            self.store.check(&mut check, &mut damaged).unwrap();
        }
        damage
    }

    /// The calls of the medium by `operation`.
    pub(super) fn cost(&self, operation: impl FnOnce()) -> Counts {
        let before = self.store.medium().counts().unwrap();
        operation();
        let after = self.store.medium().counts().unwrap();
        Counts {
            flushed_line_count: after.flushed_line_count - before.flushed_line_count,
            fence_count: after.fence_count - before.fence_count,
            streamed_bytes: after.streamed_bytes - before.streamed_bytes,
        }
    }

    /// Frees replaced items, once the threads of other tests have moved on.
    pub(super) fn free_garbage(&self) {
        while self.store.writer().space().has_garbage() {
            self.store.writer().space().collect(self.store.medium());
        }
    }
}
