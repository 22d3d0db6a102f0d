//! Gates of trees, windows of threads, and the lock of those who close gates.

use std::fmt;
use std::hint;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use epoch::Announcement;
use parking_lot::{FairMutex, FairMutexGuard};

use crate::protocol::{self, ALL, SHUT};

/// Looks at a window before the closer lets other threads run.
const SPIN_COUNT: u32 = 200;

/// The number of the next gate of this process. Windows show numbers to the closers of all stores.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(SHUT + 1);

/// The gate of a tree, with the tree's id. All writes to the tree pass it.
#[derive(Debug)]
pub struct Gate {
    number: u64,
    word: AtomicU64,
}

impl Gate {
    /// Creates an open gate of a tree with this id, which is below 2⁶³.
    #[must_use]
    pub fn new(id: u64) -> Gate {
        let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
        Gate { number, word: AtomicU64::new(protocol::open_gate(id)) }
    }

    /// Returns the tree's id. It stays the same while the calling thread has a window open for the tree, or has closed
    /// the gate.
    #[inline(always)]
    #[must_use]
    pub fn id(&self) -> u64 {
        protocol::id_within_window(&self.word)
    }
}

/// The calling thread has a window open: it is inside a write, for whose end another thread may wait. So it must not
/// wait itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WindowIsOpen;

impl fmt::Display for WindowIsOpen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the thread is inside a write")
    }
}

impl std::error::Error for WindowIsOpen {}

/// Writes to a tree were under way for longer than the closer was prepared to wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Busy;

impl fmt::Display for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a write to the tree does not end")
    }
}

impl std::error::Error for Busy {}

/// A guard: the calling thread writes, until the guard is dropped. Windows nest.
#[derive(Debug)]
#[must_use]
pub struct Window {
    announcement: Announcement,
    outer: u64,
}

impl Window {
    #[inline(always)]
    fn open(number: u64) -> Window {
        let announcement = Announcement::mine();
        let outer = announcement.word().load(Ordering::Relaxed);
        let number = if outer == SHUT || outer == number { number } else { ALL };
        protocol::open(announcement.word(), number, || announcement.light_barrier());
        Window { announcement, outer }
    }

    /// Returns true if the calling thread has a window open.
    #[must_use]
    pub fn is_open() -> bool {
        Announcement::mine().word().load(Ordering::Relaxed) != SHUT
    }
}

impl Drop for Window {
    #[inline(always)]
    fn drop(&mut self) {
        protocol::shut(self.announcement.word(), self.outer);
    }
}

/// The lock of those who close gates of one store; see the crate's head.
#[derive(Debug, Default)]
pub struct GateLock(FairMutex<()>);

impl GateLock {
    /// Opens a window for a write to the gate's tree, and returns it with the tree's id. Waits while the gate is
    /// closed. Costs no locked instruction and no fence while the gate is open.
    ///
    /// # Errors
    /// [`WindowIsOpen`] if the gate is closed and the thread is inside another write.
    #[inline(always)]
    pub fn enter(&self, gate: &Gate) -> Result<(Window, u64), WindowIsOpen> {
        let window = Window::open(gate.number);
        match protocol::id_of(&gate.word) {
            Some(id) => Ok((window, id)),
            None => Ok((self.wait(window, gate.number)?, protocol::id_within_window(&gate.word))),
        }
    }

    /// Opens a window for a write to several trees, whose ids are read afterwards by [`Gate::id`]; see
    /// [`GateLock::enter`].
    ///
    /// # Errors
    /// As for [`GateLock::enter`].
    pub fn enter_all<'g>(&self, mut gates: impl Iterator<Item = &'g Gate>) -> Result<Window, WindowIsOpen> {
        let window = Window::open(ALL);
        if gates.all(|gate| protocol::id_of(&gate.word).is_some()) { Ok(window) } else { self.wait(window, ALL) }
    }

    /// Shuts the window and opens it again under the gate lock: no gate of the store is closed then.
    #[cold]
    #[inline(never)]
    fn wait(&self, window: Window, number: u64) -> Result<Window, WindowIsOpen> {
        drop(window);
        let _holder = self.lock()?;
        Ok(Window::open(number))
    }

    /// Waits for the gate lock, first come, first served.
    ///
    /// # Errors
    /// [`WindowIsOpen`] if the thread is inside a write.
    pub fn lock(&self) -> Result<Holder<'_>, WindowIsOpen> {
        if Window::is_open() { Err(WindowIsOpen) } else { Ok(Holder(self.0.lock())) }
    }
}

/// A guard: the thread holds the gate lock of a store.
#[must_use]
pub struct Holder<'l>(#[expect(dead_code, reason = "it is held")] FairMutexGuard<'l, ()>);

impl fmt::Debug for Holder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Holder")
    }
}

impl Holder<'_> {
    /// Closes the gates of different trees, and waits until all writes to these trees have ended.
    ///
    /// # Errors
    /// [`Busy`] if they have not after `patience`; the gates are open again.
    pub fn close<'h>(&'h self, gates: &[&'h Gate], patience: Duration) -> Result<Closed<'h>, Busy> {
        let closed = Closed(gates.iter().map(|&gate| (gate, protocol::close(&gate.word))).collect());
        epoch::heavy_barrier();
        let mut deadline = None;
        for window in epoch::announcements() {
            let is_awaited = || gates.iter().any(|gate| protocol::shows(window, gate.number));
            let mut look_count = 0;
            while is_awaited() {
                look_count += 1;
                if look_count < SPIN_COUNT {
                    hint::spin_loop();
                } else if *deadline.get_or_insert_with(|| Instant::now() + patience) < Instant::now() {
                    return Err(Busy);
                } else {
                    thread::yield_now();
                }
            }
        }
        Ok(closed)
    }
}

/// A guard: the gates are closed, and no other thread writes to their trees.
#[derive(Debug)]
#[must_use]
pub struct Closed<'h>(Vec<(&'h Gate, u64)>);

impl Closed<'_> {
    /// Sets the id that the tree of one of the closed gates has when the gates open.
    pub fn set_id(&mut self, gate: &Gate, id: u64) {
        self.0.iter_mut().filter(|(closed, _)| closed.number == gate.number).for_each(|(_, of)| *of = id);
    }
}

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(|&(gate, id)| protocol::reopen(&gate.word, id));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Barrier};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    #[test]
    fn closer_waits_for_open_window_of_its_tree_alone() {
        let (lock, gate, other) = (GateLock::default(), Gate::new(1), Gate::new(2));
        let (opened, done) = (Barrier::new(2), Barrier::new(2));
        thread::scope(|scope| {
            scope.spawn(|| {
                let (window, id) = lock.enter(&gate).unwrap();
                assert_eq!(id, 1);
                opened.wait();
                done.wait();
                drop(window);
            });
            opened.wait();
            let holder = lock.lock().unwrap();
            assert_eq!(holder.close(&[&gate], Duration::ZERO).unwrap_err(), Busy);
            drop(holder.close(&[&other], PATIENCE).unwrap());
            done.wait();
            drop(holder.close(&[&gate, &other], PATIENCE).unwrap());
        });
    }

    #[test]
    fn shut_out_writer_gets_new_id() {
        let (lock, gate) = (Arc::new(GateLock::default()), Arc::new(Gate::new(1)));
        let holder = lock.lock().unwrap();
        let mut closed = holder.close(&[&gate], PATIENCE).unwrap();
        let writer = thread::spawn({
            let (lock, gate) = (Arc::clone(&lock), Arc::clone(&gate));
            move || lock.enter(&gate).unwrap().1
        });
        closed.set_id(&gate, 7);
        drop(closed);
        drop(holder);
        assert_eq!(writer.join().unwrap(), 7);
        assert_eq!(gate.id(), 7);
    }

    #[test]
    fn windows_nest_and_forbid_waiting() {
        let (lock, gate, other) = (GateLock::default(), Gate::new(1), Gate::new(2));
        let (outer, _) = lock.enter(&gate).unwrap();
        let (inner, _) = lock.enter(&other).unwrap();
        drop(inner);
        assert_eq!(lock.lock().unwrap_err(), WindowIsOpen);
        drop(outer);
        assert!(!Window::is_open());
        drop(lock.lock().unwrap());
    }

    #[test]
    fn nested_write_does_not_wait_for_its_own_closer() {
        let (lock, gate, other) = (GateLock::default(), Gate::new(1), Gate::new(2));
        let (closed, tried) = (Barrier::new(2), Barrier::new(2));
        thread::scope(|scope| {
            scope.spawn(|| {
                let holder = lock.lock().unwrap();
                let _gate = holder.close(&[&other], PATIENCE).unwrap();
                closed.wait();
                tried.wait();
            });
            let (_outer, _) = lock.enter(&gate).unwrap();
            closed.wait();
            assert_eq!(lock.enter(&other).unwrap_err(), WindowIsOpen);
            assert_eq!(lock.enter_all([&gate, &other].into_iter()).unwrap_err(), WindowIsOpen);
            tried.wait();
        });
    }

    /// Two words that writers change together, read by closers, who find them equal.
    #[test]
    fn closers_see_whole_writes() {
        let (lock, gate) = (GateLock::default(), Gate::new(1));
        let words = [AtomicU64::new(0), AtomicU64::new(0)];
        let count = if cfg!(miri) { 50 } else { 20_000 };
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..count {
                        let (_window, _) = lock.enter(&gate).unwrap();
                        words.iter().for_each(|word| _ = word.fetch_add(1, Ordering::Relaxed));
                    }
                });
            }
            for _ in 0..count / 20 {
                let holder = lock.lock().unwrap();
                let _closed = holder.close(&[&gate], PATIENCE).unwrap();
                let [one, two] = [0, 1].map(|i: usize| words[i].load(Ordering::Relaxed));
                assert_eq!(one, two);
            }
        });
        assert_eq!(words[0].load(Ordering::Relaxed), 2 * count);
    }
}
