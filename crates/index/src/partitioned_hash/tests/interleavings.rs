//! Explores every interleaving of a few operations on one line, with the reorderings that the memory model allows:
//! the life of a slot from FRESH through settled and DELETED to its next entry, or to another segment.
//!
//! The code under test is the index's own. Loom controls its bucket locks and the words of the directory
//! (`shared`). Loom's threads share one real pin, which keeps everything. Where a scene reuses space, a separate
//! counter stands for the pins; the model of `epoch` shows that pins have the same effect. Not covered: two lines
//! at once, and reorderings within a segment that a split has made, except for its links.
//!
//! A batch of two keys of that line is modelled with its word. Loom does not control its table in DRAM: a counter
//! stands for the order that the table's words provide.
//!
//! A run is limited to two preemptions, and with three threads or in a sample of the tests to one. A longer campaign
//! allows more (two threads: two minutes; three: five and more):
//!
//! ```text
//! LOOM_MAX_PREEMPTIONS=3 cargo test -p hikv-index interleavings
//! ```

use std::sync::Arc as Shared;
use std::sync::atomic::Ordering;

use loom::sync::Arc;
use loom::sync::atomic::AtomicU64;
use loom::thread;
use pmem::{Canary, Offset};
use testkit::Extent;

use super::super::Found;
use super::super::layout::Home;
use super::rig::{Key, Rig, item};
use crate::Position;
use word::model::chosen::Model;

use modelled::Modelled;

mod batches;
mod broken;
mod durable;
mod modelled;
mod scenes;

/// Two keys of one home line and different signatures, which a split separates, and one that shares the first one's
/// signature.
const ONE: Key = Key { signature: 0x77, number: 1 };
const TWO: Key = Key { signature: 0x77 + (1 << 63), number: 2 };
const ALIKE: Key = Key { signature: 0x77, number: 3 };
/// Another key of that line.
const THREE: Key = Key { signature: 0x77 + (1 << 62), number: 5 };
/// A key of the adjacent line.
const BESIDE: Key = Key { signature: 0x70, number: 4 };

/// The preemptions in a run of two threads, unless `LOOM_MAX_PREEMPTIONS` is set: enough to catch every broken
/// variant.
const PREEMPTION_COUNT_MAX: usize = 2;
/// The preemptions in a run of three. When one thread ends, the other two take turns anyway. Two preemptions would
/// need ten times as many runs.
const PREEMPTION_COUNT_OF_THREE_MAX: usize = 1;

/// The omission of a broken variant.
#[derive(Clone, Copy)]
struct Broken {
    /// A step of the index.
    step: Option<Canary>,
    /// Space is reused although a reader is pinned.
    pins: bool,
}

const WHOLE: Broken = Broken { step: None, pins: false };

/// The behaviour of a commit.
#[derive(Clone, Copy)]
enum Commits {
    /// A commit is complete when it returns, as on memory: the publisher settles before the unlock.
    AtOnce,
    /// A commit must be waited for, as on a log: the publisher settles after the unlock.
    Later,
}

/// A store, and the threads that use it.
struct Scene {
    rig: Rig<Modelled>,
    pinned: AtomicU64,
    broken: Broken,
}

impl Scene {
    fn new(line: Offset, broken: Broken, commits: Commits) -> Scene {
        let rig = Rig::format(Modelled::new(line, broken.step, matches!(commits, Commits::AtOnce)), 1);
        Scene { rig, pinned: AtomicU64::new(0), broken }
    }

    fn put(&self, key: Key, value: u64) {
        self.put_at(key, self.rig.write_item(key, value));
    }

    /// Puts an item that was written, and returns the position that it replaced.
    fn put_at(&self, key: Key, position: Position) -> Option<Position> {
        let (published, found) = self.rig.publish(key, position).expect("there is space");
        self.rig.finish(published, found);
        found.map(|found| found.position)
    }

    /// Publishes an entry that no thread settles, as a killed process does.
    fn put_half(&self, key: Key, value: u64) {
        let _never_settled = self.rig.publish(key, self.rig.write_item(key, value)).expect("there is space");
    }

    fn remove(&self, key: Key) -> Option<u64> {
        self.unlink(key).map(|found| found.value)
    }

    /// Removes an entry, and returns it.
    fn unlink(&self, key: Key) -> Option<Found<u64>> {
        let (published, found) = self.rig.publish_removal(key)?;
        self.rig.finish(published, Some(found));
        Some(found)
    }

    fn get(&self, key: Key) -> Option<u64> {
        self.rig.get(key)
    }

    /// Returns the value of the key that a power loss would leave.
    fn durable(&self, key: Key) -> Option<u64> {
        let entries = self.rig.medium.durable_entries().filter(|(signature, _)| *signature == key.signature);
        let mut items = entries.map(|(_, position)| item(&self.rig.medium.sim, position));
        items.find(|(number, _)| *number == key.number).map(|(_, value)| value)
    }

    /// Splits the segment.
    fn split(&self) {
        self.rig.split(ONE.signature);
        assert_eq!(self.rig.index.split_stats().split_count, 1, "it was chained instead");
    }

    /// Works on items that no thread may overwrite in the meantime.
    fn pinned<R>(&self, work: impl FnOnce() -> R) -> R {
        self.pinned.fetch_add(1, Ordering::AcqRel);
        let result = work();
        self.pinned.fetch_sub(1, Ordering::AcqRel);
        result
    }

    /// Puts `key` with an item in the space of one that was unlinked, unless a pin prevents it.
    fn put_in_space(&self, freed: Position, key: Key, value: u64) {
        if self.broken.pins || self.pinned.fetch_or(0, Ordering::AcqRel) == 0 {
            self.rig.fill_item(freed, key, value);
            self.put_at(key, freed.item());
        }
    }
}

/// Returns the place of the keys' home line in a fresh store.
fn home_line() -> Offset {
    let rig = Rig::new(1);
    let _pin = epoch::pin();
    Home::of(ONE.signature).offset(rig.index.segments.offset(ONE.signature))
}

/// Runs `threads` on a store that `before` has prepared, in every way with few preemptions, and then runs `after`.
fn model(broken: Broken, before: fn(&Scene), threads: &[fn(&Scene)], after: fn(&Scene)) {
    model_with(Commits::Later, broken, before, threads, after);
}

fn model_with(commits: Commits, broken: Broken, before: fn(&Scene), threads: &[fn(&Scene)], after: fn(&Scene)) {
    let (line, threads) = (home_line(), Shared::<[fn(&Scene)]>::from(threads));
    let mut model = loom::model::Builder::new();
    let is_sampled = !broken.pins && broken.step.is_none() && Extent::pick(true, false);
    let most = if threads.len() < 3 && !is_sampled { PREEMPTION_COUNT_MAX } else { PREEMPTION_COUNT_OF_THREE_MAX };
    model.preemption_bound = model.preemption_bound.or(Some(most));
    model.check(move || {
        let _model = Model::enter();
        let _pin = epoch::pin();
        let scene = Arc::new(Scene::new(line, broken, commits));
        before(&scene);
        let spawn = |work: fn(&Scene)| {
            let scene = Arc::clone(&scene);
            thread::spawn(move || work(&scene))
        };
        let running: Vec<_> = threads.iter().map(|&work| spawn(work)).collect();
        running.into_iter().for_each(|thread| thread.join().unwrap());
        after(&scene);
    });
}

/// Reads twice. A value that was seen once must not disappear, not even by a power loss.
fn read_in_order(scene: &Scene, key: Key, order: &[Option<u64>]) {
    let place = |value| order.iter().position(|&known| known == value).unwrap_or_else(|| panic!("{value:?} was read"));
    let first = place(scene.get(key));
    let durable = place(scene.durable(key));
    assert!(first <= durable, "{:?} was read, {:?} is durable", order[first], order[durable]);
    let second = place(scene.get(key));
    assert!(first <= second, "{:?} after {:?}", order[second], order[first]);
}
