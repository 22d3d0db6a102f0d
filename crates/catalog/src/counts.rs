//! The number of keys of each tree.
//!
//! Counts are not stored. The first caller that asks for one counts the keys of all trees by a walk, and from then on
//! every write that adds or removes a key changes its tree's count. So counts are exact after a crash as well.
//!
//! | step of counting | other threads |
//! |---|---|
//! | 1 the caller makes all writes to marked keys wait | |
//! | 2 [`Counts::count_part`] counts the keys of the next part of the walk, and notes how far the walk has come | wait |
//! | 3 the caller lets writes go on; repeat from 1 until the walk has ended | a write changes a count if the walk has passed its key ([`Counts::note`]) |
//!
//! A key that the walk has passed was counted if it was present then, and every later change of it is noted. Any other
//! key is met by the walk later, as it is then. Between steps 1 and 3 no write is under way, so each write sees one
//! place of the walk from its beginning to its note.
//!
//! A write and its note are two steps for other threads: while writes are under way, a count may lack them, as
//! [`engine::Walks::len`] may.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, Ordering};

use engine::{Cursor, Error};
use parking_lot::{Mutex, RwLock};

use crate::tree_id::{TreeId, is_marked};

/// Counts of one tree are the sum of as many parts, so that threads seldom wait for each other.
const PART_COUNT: usize = 16;
/// Keys that are counted while writes wait.
const KEYS_PER_PART: u64 = 4096;

const UNKNOWN: u8 = 0;
const COUNTING: u8 = 1;
const KNOWN: u8 = 2;

/// The owner of a marked key; `None` for keys of the catalog and reserved ones.
type Owner = Option<TreeId>;

/// Changes of counts. Aligned, so that no two threads write to the same cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Part(Mutex<Sums>);

/// Sums of changes: by owner, and of all marked keys.
#[derive(Debug, Default)]
struct Sums {
    of: HashMap<Owner, i64>,
    all: i64,
}

impl Sums {
    fn add(&mut self, owner: Owner, by: i64) {
        *self.of.entry(owner).or_default() += by;
        self.all += by;
    }
}

/// The number of marked stored keys of each tree of an open store.
#[derive(Debug, Default)]
pub struct Counts {
    /// [`UNKNOWN`], [`COUNTING`] or [`KNOWN`]. Changes only while writes wait.
    state: AtomicU8,
    /// The place of the walk while keys are counted.
    cursor: RwLock<Cursor>,
    parts: [Part; PART_COUNT],
}

impl Counts {
    /// Returns true if all keys were counted.
    #[must_use]
    pub fn are_known(&self) -> bool {
        self.state.load(Ordering::Acquire) == KNOWN
    }

    /// Notes that a write has added (1) or removed (-1) a stored key. `has_passed` returns true if a walk that has
    /// come to this place has visited the key.
    pub fn note(&self, stored: &[u8], by: i64, has_passed: impl FnOnce(&Cursor) -> bool) {
        let is_counted = match self.state.load(Ordering::Acquire) {
            UNKNOWN => false,
            COUNTING => has_passed(&self.cursor.read()),
            _ => true,
        };
        if is_counted && is_marked(stored) {
            let part = &self.parts[epoch::thread_index() % PART_COUNT];
            part.0.lock().add(TreeId::of_stored(stored), by);
        }
    }

    /// Counts some of the keys that were not counted yet, by steps of [`engine::Walks::walk_stored`]. No marked key is
    /// added or removed during the call.
    ///
    /// # Errors
    /// Those of `walk`; the next call counts the same keys again.
    pub fn count_part(
        &self,
        mut walk: impl FnMut(Cursor, &mut dyn FnMut(&[u8])) -> Result<Cursor, Error>,
    ) -> Result<(), Error> {
        if self.are_known() {
            return Ok(());
        }
        let mut place = self.cursor.write();
        if *place == Cursor::Start {
            self.parts.iter().for_each(|part| *part.0.lock() = Sums::default());
        }
        let (mut cursor, mut found, mut visited_count) = (place.clone(), HashMap::new(), 0);
        while visited_count < KEYS_PER_PART && !cursor.is_done() {
            cursor = walk(cursor, &mut |stored| {
                visited_count += 1;
                if is_marked(stored) {
                    *found.entry(TreeId::of_stored(stored)).or_insert(0) += 1;
                }
            })?;
        }
        let mut part = self.parts[0].0.lock();
        found.into_iter().for_each(|(owner, count)| part.add(owner, count));
        let is_done = cursor.is_done();
        *place = if is_done { Cursor::Start } else { cursor };
        self.state.store(if is_done { KNOWN } else { COUNTING }, Ordering::Release);
        Ok(())
    }

    /// Forgets all counts, because all keys were deleted. No marked key is added or removed during the call.
    pub fn forget(&self) {
        *self.cursor.write() = Cursor::Start;
        self.state.store(UNKNOWN, Ordering::Release);
    }

    /// Returns the number of stored keys of a tree. Of the nameless tree, these are the ones that are stored under
    /// other names. Meaningful if counts are known.
    #[must_use]
    pub fn of(&self, id: TreeId) -> u64 {
        let counts = self.parts.iter().map(|part| part.0.lock().of.get(&Some(id)).copied().unwrap_or(0));
        positive(counts.sum())
    }

    /// Returns the number of all marked keys, including those of the catalog and of dead ids.
    #[must_use]
    pub fn marked(&self) -> u64 {
        positive(self.parts.iter().map(|part| part.0.lock().all).sum())
    }

    /// Frees the memory of counts that are 0, for ids that are gone.
    pub fn trim(&self) {
        let mut parts: Vec<_> = self.parts.iter().map(|part| part.0.lock()).collect();
        let mut sums = Sums::default();
        parts.iter_mut().flat_map(|part| std::mem::take(&mut **part).of).for_each(|(owner, by)| sums.add(owner, by));
        sums.of.retain(|_, sum| *sum != 0);
        *parts[0] = sums;
    }
}

/// While a write is under way, a thread may have noted that it removed a key, and another one not yet that it added it.
fn positive(sum: i64) -> u64 {
    sum.max(0).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::space::Space;

    const WALKED_PER_STEP: usize = 700;

    /// Stored keys in order, of three trees, the catalog and the nameless tree.
    struct World {
        keys: BTreeSet<Vec<u8>>,
        counts: Counts,
        /// A number that decides about the next change.
        seed: u64,
        variant: Variant,
    }

    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Variant {
        Whole,
        NotesAllWhileCounting,
        NotesNothingWhileCounting,
        WritesBetweenSteps,
        RemovalsNotNoted,
    }

    fn some_key(number: u64) -> Vec<u8> {
        let space = [TreeId::new(3), TreeId::new(16), TreeId::new(70_000), TreeId::NAMELESS][number as usize % 4];
        Space::of(space).with_stored(&number.to_be_bytes(), <[u8]>::to_vec)
    }

    impl World {
        fn new(variant: Variant) -> World {
            let keys = (0..20_000).map(|number| some_key(number * 7)).chain([vec![0xFF, 0x10, 0]]).collect();
            World { keys, counts: Counts::default(), seed: 1, variant }
        }

        /// Adds and removes some keys, and notes it.
        fn write(&mut self) {
            for _ in 0..200 {
                self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let key = some_key((self.seed >> 33) % 150_000);
                let has_passed = |place: &Cursor| match self.variant {
                    Variant::NotesAllWhileCounting => true,
                    Variant::NotesNothingWhileCounting => false,
                    _ => place.is_done() || matches!(place, Cursor::After(last) if key <= *last),
                };
                if self.keys.insert(key.clone()) {
                    self.counts.note(&key, 1, has_passed);
                } else if self.seed >> 32 & 1 == 0 {
                    self.keys.remove(&key);
                    if self.variant != Variant::RemovalsNotNoted {
                        self.counts.note(&key, -1, has_passed);
                    }
                }
            }
        }

        fn walk(&self, cursor: &Cursor, each: &mut dyn FnMut(&[u8])) -> Cursor {
            let after = if let Cursor::After(last) = cursor { last.clone() } else { Vec::new() };
            let shown: Vec<_> =
                self.keys.range(after.clone()..).filter(|key| **key > after).take(WALKED_PER_STEP).collect();
            shown.iter().for_each(|key| each(key));
            if shown.len() < WALKED_PER_STEP { Cursor::End } else { Cursor::After(shown[shown.len() - 1].clone()) }
        }

        fn count(&mut self) {
            while !self.counts.are_known() {
                self.write();
                let counts = std::mem::take(&mut self.counts);
                counts.count_part(|cursor, each| Ok(self.walk(&cursor, each))).unwrap();
                self.counts = counts;
                if self.variant == Variant::WritesBetweenSteps && !self.counts.are_known() {
                    // As if these writes had not waited: they saw the place of the part before.
                    let place = std::mem::take(&mut *self.counts.cursor.write());
                    self.write();
                    *self.counts.cursor.write() = place;
                }
            }
            self.write();
        }

        fn is_exact(&self) -> bool {
            let of = |id: TreeId| self.keys.iter().filter(|key| TreeId::of_stored(key) == Some(id)).count() as u64;
            let trees = [3, 16, 70_000].map(TreeId::new);
            let marked = self.keys.iter().filter(|key| is_marked(key)).count() as u64;
            trees.into_iter().all(|id| self.counts.of(id) == of(id)) && self.counts.marked() == marked
        }
    }

    #[test]
    fn counts_are_exact_while_keys_change() {
        let mut world = World::new(Variant::Whole);
        world.count();
        assert!(world.is_exact());
        world.counts.trim();
        assert!(world.is_exact());
        world.keys.clear();
        world.counts.forget();
        world.count();
        assert!(world.is_exact());
    }

    #[test]
    fn broken_variants_are_caught() {
        let broken = [
            Variant::NotesAllWhileCounting,
            Variant::NotesNothingWhileCounting,
            Variant::WritesBetweenSteps,
            Variant::RemovalsNotNoted,
        ];
        for variant in broken {
            let mut world = World::new(variant);
            world.count();
            assert!(!world.is_exact());
        }
    }

    #[test]
    fn zeros_are_trimmed() {
        let counts = Counts::default();
        counts.count_part(|_, _| Ok(Cursor::End)).unwrap();
        counts.note(&some_key(1), 1, |_| true);
        counts.note(&some_key(1), -1, |_| true);
        counts.note(&some_key(2), 1, |_| true);
        counts.trim();
        assert_eq!(counts.parts.iter().map(|part| part.0.lock().of.len()).sum::<usize>(), 1);
        assert_eq!(counts.of(TreeId::new(70_000)), 1);
    }
}
