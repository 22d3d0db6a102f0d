//! Explores every interleaving of threads that read, store, load, evict and write a page to the base, with the
//! reorderings that the memory model allows, and the broken variants. Not run by Miri: loom switches stacks in
//! assembly.

use std::panic::catch_unwind;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, fence};
use loom::thread;
use word::model::{NoRelease, Unchanged, WeakenedByte, Weakening};

use super::*;

/// The page in the base, with the log's entries applied, and after a store.
const IN_BASE: u64 = 1;
const REDONE: u64 = 2;
const STORED: u64 = 9;

/// A fault of one step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    None,
    EvictedWithoutGrace,
    EvictedWhileStored,
    CleanBeforeSync,
    RedoAppliedTwice,
    CopiedBeforeGrace,
    RescueLost,
    WalkedUnrescued,
}

/// A page: its state, its memory and the base. Each user has a pin.
struct World<W> {
    fault: Fault,
    state: WeakenedByte<W>,
    memory: AtomicU64,
    /// Shared by users of the memory, exclusive to a thread that fills or frees it.
    access: UnsafeCell<()>,
    /// The content of the file as reads see it, and its durable content.
    base: AtomicU64,
    synced: AtomicU64,
    pins: [AtomicU64; 2],
    sync_fails: bool,
}

impl<W: Weakening> World<W> {
    fn new(fault: Fault, state: State, memory: u64) -> World<W> {
        World {
            fault,
            state: WeakenedByte::new(state as u8),
            memory: AtomicU64::new(memory),
            access: UnsafeCell::new(()),
            base: AtomicU64::new(IN_BASE),
            synced: AtomicU64::new(IN_BASE),
            pins: [0, 0].map(AtomicU64::new),
            sync_fails: false,
        }
    }

    fn pinned(&self, user: usize, operate: impl FnOnce()) {
        self.pins[user].store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        operate();
        self.pins[user].store(0, Ordering::Release);
    }

    /// Returns true if every operation that began before has ended.
    fn is_grace_over(&self) -> bool {
        fence(Ordering::SeqCst);
        self.pins.iter().all(|pin| pin.load(Ordering::Acquire) == 0)
    }

    /// Fills or frees the memory, which the caller has claimed.
    fn alone(&self, change: impl FnOnce()) {
        self.access.with_mut(|_| change());
    }

    /// Loads the claimed page; it is `clean` then, unless the log has entries for it.
    fn load(&self, from: State, clean: State) {
        let mut word = self.base.load(Ordering::Relaxed);
        let has_redo = from == State::Absent;
        word = if has_redo { REDONE } else { word };
        self.alone(|| self.memory.store(word, Ordering::Relaxed));
        settle(&self.state, if has_redo { State::Stored } else { clean });
    }

    /// Uses the page, unless another thread is busy with it.
    fn use_page(
        &self,
        user: usize,
        (reach, clean): (impl Fn(&WeakenedByte<W>) -> Reached, State),
        operate: impl Fn(&AtomicU64),
    ) -> bool {
        let mut is_done = false;
        self.pinned(user, || {
            loop {
                match reach(&self.state) {
                    Reached::Claimed(from) => self.load(from, clean),
                    Reached::Ready(_) => {
                        self.access.with(|_| operate(&self.memory));
                        is_done = true;
                        return;
                    }
                    Reached::Busy | Reached::Lost => return,
                }
            }
        });
        is_done
    }

    fn read(&self, user: usize, expected: &[u64]) -> bool {
        self.read_by(user, (reach, State::Present), Fault::RescueLost, expected)
    }

    /// Reads the page by a thread that will not need it again.
    fn walk(&self, user: usize, expected: &[u64]) -> bool {
        self.read_by(user, (reach_once, State::Cold), Fault::WalkedUnrescued, expected)
    }

    /// Reads the page. With the fault `unrescued`, a page that is being evicted is not rescued.
    fn read_by(
        &self,
        user: usize,
        (reach, clean): (impl Fn(&WeakenedByte<W>) -> Reached, State),
        unrescued: Fault,
        expected: &[u64],
    ) -> bool {
        let is_unrescued = |word: &WeakenedByte<W>| self.fault == unrescued && state_of(word) == State::Evicting;
        let reach = |word: &_| if is_unrescued(word) { Reached::Ready(State::Evicting) } else { reach(word) };
        self.use_page(user, (reach, clean), |memory| {
            let found = memory.load(Ordering::Relaxed);
            assert!(expected.contains(&found), "{found} is none of {expected:?}");
        })
    }

    fn store(&self, user: usize) -> bool {
        self.use_page(user, (reach_to_store, State::Present), |memory| memory.store(STORED, Ordering::Relaxed))
    }

    fn evict(&self) {
        if self.fault == Fault::EvictedWhileStored {
            change(&self.state, State::Stored, State::Cold);
        }
        if !(0..2).any(|_| pass(&self.state)) {
            return;
        }
        if self.fault != Fault::EvictedWithoutGrace && !self.is_grace_over() {
            return relink(&self.state);
        }
        if take(&self.state) {
            self.alone(|| self.memory.store(0, Ordering::Relaxed));
            let is_redone_again = self.fault == Fault::RedoAppliedTwice;
            settle(&self.state, if is_redone_again { State::Absent } else { State::Evicted });
        }
    }

    fn checkpoint(&self) {
        if !begin_write(&self.state) {
            return;
        }
        let is_clean = self.fault == Fault::CopiedBeforeGrace || self.is_grace_over();
        let copy = self.access.with(|_| self.memory.load(Ordering::Relaxed));
        self.base.store(copy, Ordering::Relaxed);
        let end = || if is_clean { end_write(&self.state) } else { repeat_write(&self.state) };
        if self.fault == Fault::CleanBeforeSync {
            end();
        }
        if self.sync_fails {
            // The kernel drops the pages that it could not write.
            return self.base.store(self.synced.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        self.synced.store(copy, Ordering::Relaxed);
        end();
    }
}

type Scene<W> = fn(&World<W>);

/// Runs each of these at the same time as the others, and then `after`.
fn explore<W: Weakening>(new: impl Fn() -> World<W> + Send + Sync + 'static, threads: [Scene<W>; 2], after: Scene<W>) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        let world = Arc::new(new());
        let other = {
            let world = Arc::clone(&world);
            thread::spawn(move || threads[1](&world))
        };
        threads[0](&world);
        other.join().unwrap();
        after(&world);
    });
}

fn evictor_beside_reader<W: Weakening>(fault: Fault) {
    let read: Scene<W> = |world| {
        world.read(0, &[IN_BASE]);
        world.read(0, &[IN_BASE]);
    };
    let evict: Scene<W> = |world| (0..2).for_each(|_| world.evict());
    explore(
        move || World::new(fault, State::Present, IN_BASE),
        [read, evict],
        |world| {
            assert!(world.read(0, &[IN_BASE]));
        },
    );
}

fn evictor_beside_walker<W: Weakening>(fault: Fault) {
    let walk: Scene<W> = |world| {
        world.walk(0, &[IN_BASE]);
        world.walk(0, &[IN_BASE]);
    };
    let evict: Scene<W> = |world| (0..2).for_each(|_| world.evict());
    explore(
        move || World::new(fault, State::Evicted, 0),
        [walk, evict],
        |world| {
            assert!(world.read(0, &[IN_BASE]));
        },
    );
}

fn evictor_beside_loader<W: Weakening>() {
    let read: Scene<W> = |world| _ = world.read(0, &[REDONE]);
    let both: Scene<W> = |world| {
        world.read(1, &[REDONE]);
        world.checkpoint();
        world.evict();
    };
    explore(
        || World::new(Fault::None, State::Absent, 0),
        [read, both],
        |world| {
            assert!(world.read(0, &[REDONE]));
        },
    );
}

fn checkpoint_beside_storer<W: Weakening>(fault: Fault) {
    let store: Scene<W> = |world| {
        while !world.store(0) {
            thread::yield_now();
        }
    };
    let clean: Scene<W> = |world| {
        world.checkpoint();
        world.evict();
    };
    explore(
        move || World::new(fault, State::Stored, REDONE),
        [store, clean],
        |world| {
            world.evict();
            assert!(world.read(0, &[STORED]));
            world.checkpoint();
            world.evict();
            assert!(world.read(0, &[STORED]));
        },
    );
}

/// A page with entries in the replayed log is loaded, stored to, written and evicted.
fn reloaded<W: Weakening>(fault: Fault) {
    let store: Scene<W> = |world| assert!(world.store(0));
    explore(
        move || World::new(fault, State::Absent, 0),
        [store, |_| {}],
        |world| {
            world.checkpoint();
            world.evict();
            assert!(world.read(0, &[STORED]));
        },
    );
}

/// The sync of the base fails.
fn unsynced<W: Weakening>(fault: Fault) {
    let new = move || World { sync_fails: true, ..World::<W>::new(fault, State::Stored, STORED) };
    explore(new, [World::checkpoint, World::evict], |world| {
        world.evict();
        assert!(world.read(0, &[STORED]));
    });
}

fn is_caught(scene: fn(Fault), fault: Fault) -> bool {
    catch_unwind(|| scene(fault)).is_err()
}

#[test]
fn readers_find_the_page_whatever_is_evicted() {
    evictor_beside_reader::<Unchanged>(Fault::None);
    evictor_beside_walker::<Unchanged>(Fault::None);
    evictor_beside_loader::<Unchanged>();
}

#[test]
fn stores_survive_checkpoints_and_evictions() {
    checkpoint_beside_storer::<Unchanged>(Fault::None);
    reloaded::<Unchanged>(Fault::None);
    unsynced::<Unchanged>(Fault::None);
}

#[test]
fn broken_evictions_are_caught() {
    for fault in [Fault::EvictedWithoutGrace, Fault::RescueLost] {
        assert!(is_caught(evictor_beside_reader::<Unchanged>, fault), "{fault:?}");
    }
    assert!(is_caught(evictor_beside_walker::<Unchanged>, Fault::WalkedUnrescued));
    assert!(catch_unwind(|| evictor_beside_reader::<NoRelease>(Fault::None)).is_err());
}

#[test]
fn broken_checkpoints_are_caught() {
    for fault in [Fault::EvictedWhileStored, Fault::CopiedBeforeGrace] {
        assert!(is_caught(checkpoint_beside_storer::<Unchanged>, fault), "{fault:?}");
    }
    assert!(is_caught(reloaded::<Unchanged>, Fault::RedoAppliedTwice));
    assert!(is_caught(unsynced::<Unchanged>, Fault::CleanBeforeSync));
}
