//! Gates of trees, and the lock of those who close them.

use std::cell::RefCell;
use std::fmt;
use std::hint;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{FairMutex, FairMutexGuard};

use crate::protocol::{self, ALL, SHUT};
use crate::window::{Closing, Inside, Window, idle};

/// Looks at a window before the closer sleeps.
const SPIN_COUNT: u32 = 200;

/// The time between two later looks. A thread with a real-time priority must let others run.
const PAUSE: Duration = Duration::from_micros(20);

/// The number of the next gate of this process. Windows show numbers to the closers of all stores.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(SHUT + 1);

/// The gate of a tree. All writes to the tree pass it.
#[derive(Debug)]
pub struct Gate {
    number: u64,
    word: AtomicU64,
}

impl Gate {
    /// Creates the gate of writes that may concern any tree. Its number is that of a window for all gates.
    fn of_all() -> Gate {
        Gate { number: ALL, word: AtomicU64::new(protocol::OPEN) }
    }
}

impl Default for Gate {
    /// Creates an open gate.
    fn default() -> Gate {
        let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
        Gate { number, word: AtomicU64::new(protocol::OPEN) }
    }
}

/// Writes to a tree were under way for longer than the closer was prepared to wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Busy;

impl fmt::Display for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a write to the tree does not end")
    }
}

impl std::error::Error for Busy {}

/// The lock of those who close gates of one store; see the crate's head.
#[derive(Debug)]
pub struct GateLock {
    lock: FairMutex<()>,
    /// Closed while any other gate of the store is.
    all: Arc<Gate>,
}

impl Default for GateLock {
    fn default() -> GateLock {
        GateLock { lock: FairMutex::default(), all: Arc::new(Gate::of_all()) }
    }
}

impl GateLock {
    /// Returns a gate for writes that may concern any tree of the store. It closes with each other gate.
    #[inline(always)]
    pub fn all(&self) -> &Arc<Gate> {
        &self.all
    }

    /// Opens a window for a write to the gate's tree. Waits while the gate is closed. Costs no locked instruction and
    /// no fence while the gate is open.
    ///
    /// # Errors
    /// [`Inside::Body`]; [`Inside::Write`] if the gate is closed and the thread is inside another write.
    #[inline(always)]
    pub fn enter(&self, gate: &Gate) -> Result<Window, Inside> {
        let window = Window::open(gate.number)?;
        if protocol::is_open(&gate.word) { Ok(window) } else { self.wait(window, gate.number) }
    }

    /// Opens a window for a write to several trees; see [`GateLock::enter`].
    ///
    /// # Errors
    /// As for [`GateLock::enter`].
    pub fn enter_all<'g>(&self, mut gates: impl Iterator<Item = &'g Gate>) -> Result<Window, Inside> {
        let window = Window::open(ALL)?;
        if gates.all(|gate| protocol::is_open(&gate.word)) { Ok(window) } else { self.wait(window, ALL) }
    }

    /// Shuts the window and opens it again under the gate lock: no gate of the store is closed then. A window within
    /// another one of the same tree stays open: the closer waits for both.
    #[cold]
    #[inline(never)]
    fn wait(&self, window: Window, number: u64) -> Result<Window, Inside> {
        if window.is_within(number) {
            return Ok(window);
        }
        drop(window);
        idle()?;
        let _lock = self.lock.lock();
        Window::open(number)
    }

    /// Waits for the gate lock, first come, first served.
    ///
    /// # Errors
    /// [`Inside`] if the thread is inside a write or a body.
    pub fn lock(&self) -> Result<Holder<'_>, Inside> {
        idle()?;
        self.held(self.lock.lock())
    }

    /// Takes the gate lock if it is free.
    ///
    /// # Errors
    /// As for [`GateLock::lock`].
    pub fn try_lock(&self) -> Result<Option<Holder<'_>>, Inside> {
        idle()?;
        self.lock.try_lock().map(|lock| self.held(lock)).transpose()
    }

    fn held<'l>(&'l self, lock: FairMutexGuard<'l, ()>) -> Result<Holder<'l>, Inside> {
        Ok(Holder { closed: RefCell::default(), all: &self.all, _closing: Closing::begin()?, _lock: lock })
    }
}

/// A guard: the thread holds the gate lock of a store. When it is dropped, the gates that it has closed open first.
#[must_use]
pub struct Holder<'l> {
    closed: RefCell<Vec<Arc<Gate>>>,
    all: &'l Arc<Gate>,
    _closing: Closing,
    _lock: FairMutexGuard<'l, ()>,
}

impl fmt::Debug for Holder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Holder").field("closed", &self.closed).finish_non_exhaustive()
    }
}

impl Holder<'_> {
    /// Closes the gates, as far as they are open, and waits until all writes to their trees have ended. No other thread
    /// writes to them from then on.
    ///
    /// # Errors
    /// [`Busy`] if the writes have not ended after `patience`: these gates are open again.
    pub fn close<'g>(&self, gates: impl Iterator<Item = &'g Arc<Gate>>, patience: Duration) -> Result<(), Busy> {
        let mut closed = self.closed.borrow_mut();
        let first = closed.len();
        for gate in gates {
            if !closed.iter().any(|other| other.number == gate.number) {
                protocol::close(&gate.word);
                closed.push(Arc::clone(gate));
            }
        }
        if first == closed.len() {
            return Ok(());
        }
        if first == 0 {
            protocol::close(&self.all.word);
            closed.push(Arc::clone(self.all));
        }
        epoch::heavy_barrier();
        let ended = epoch::announcements().try_for_each(|window| wait_for(window, &closed[first..], patience));
        if ended.is_err() {
            closed.drain(first..).for_each(|gate| protocol::reopen(&gate.word));
        }
        ended
    }
}

/// Waits until the window shows none of the gates.
fn wait_for(window: &AtomicU64, gates: &[Arc<Gate>], patience: Duration) -> Result<(), Busy> {
    let is_awaited = || gates.iter().any(|gate| protocol::shows(window, gate.number));
    let spins_until_ended = || {
        (0..SPIN_COUNT).any(|_| {
            hint::spin_loop();
            !is_awaited()
        })
    };
    if is_awaited() && !spins_until_ended() {
        let deadline = Instant::now() + patience;
        while is_awaited() {
            if Instant::now() > deadline {
                return Err(Busy);
            }
            thread::sleep(PAUSE);
        }
    }
    Ok(())
}

impl Drop for Holder<'_> {
    fn drop(&mut self) {
        self.closed.get_mut().iter().for_each(|gate| protocol::reopen(&gate.word));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;
    use crate::window::{Body, is_writing};

    const PATIENCE: Duration = Duration::from_secs(60);

    fn gates<const N: usize>() -> (GateLock, [Arc<Gate>; N]) {
        (GateLock::default(), std::array::from_fn(|_| Arc::new(Gate::default())))
    }

    #[test]
    fn closer_waits_for_its_trees_window() {
        let (lock, [gate, other]) = gates();
        let (opened, done) = (Barrier::new(2), Barrier::new(2));
        thread::scope(|scope| {
            scope.spawn(|| {
                let window = lock.enter(&gate).unwrap();
                opened.wait();
                done.wait();
                drop(window);
            });
            opened.wait();
            let holder = lock.lock().unwrap();
            assert_eq!(holder.close([&gate].into_iter(), Duration::ZERO).unwrap_err(), Busy);
            holder.close([&other].into_iter(), PATIENCE).unwrap();
            done.wait();
            holder.close([&gate, &other].into_iter(), PATIENCE).unwrap();
        });
    }

    #[test]
    fn each_gate_blocks_any_tree_writer() {
        let (lock, [gate, other]) = gates();
        let (opened, done) = (Barrier::new(2), Barrier::new(2));
        thread::scope(|scope| {
            scope.spawn(|| {
                let window = lock.enter(lock.all()).unwrap();
                opened.wait();
                done.wait();
                drop(window);
            });
            opened.wait();
            let holder = lock.lock().unwrap();
            assert_eq!(holder.close([&gate].into_iter(), Duration::ZERO).unwrap_err(), Busy);
            assert!(protocol::is_open(&lock.all().word));
            done.wait();
            holder.close([&gate].into_iter(), PATIENCE).unwrap();
            holder.close([&other].into_iter(), PATIENCE).unwrap();
            assert!(!protocol::is_open(&lock.all().word));
            drop(holder);
            drop(lock.enter(lock.all()).unwrap());
        });
    }

    #[test]
    fn shut_out_writer_sees_the_closers_change() {
        let (lock, [gate]) = gates();
        let id = AtomicU64::new(1);
        let holder = lock.lock().unwrap();
        holder.close([&gate].into_iter(), PATIENCE).unwrap();
        thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let _window = lock.enter(&gate).unwrap();
                id.load(Ordering::Relaxed)
            });
            id.store(7, Ordering::Relaxed);
            drop(holder);
            assert_eq!(writer.join().unwrap(), 7);
        });
    }

    #[test]
    fn windows_nest_and_forbid_waiting() {
        let (lock, [gate, other]) = gates();
        let outer = lock.enter(&gate).unwrap();
        drop(lock.enter(&other).unwrap());
        assert_eq!(lock.lock().unwrap_err(), Inside::Write);
        assert_eq!(Body::begin().unwrap_err(), Inside::Write);
        assert!(is_writing());
        drop(outer);
        assert!(!is_writing());
        let holder = lock.lock().unwrap();
        thread::scope(|scope| _ = scope.spawn(|| assert!(lock.try_lock().unwrap().is_none())));
        assert!(is_writing());
        assert_eq!(lock.enter(&gate).unwrap_err(), Inside::Write);
        assert_eq!(lock.lock().unwrap_err(), Inside::Write);
        drop(Body::begin().unwrap());
        assert!(is_writing());
        drop(holder);
        assert!(!is_writing());
        drop(lock.try_lock().unwrap().expect("it is free"));
    }

    #[test]
    fn body_writes_nothing_on_its_own() {
        let (lock, [gate]) = gates();
        let body = Body::begin().unwrap();
        assert_eq!(lock.enter(&gate).unwrap_err(), Inside::Body);
        assert_eq!(lock.lock().unwrap_err(), Inside::Body);
        assert_eq!(Body::begin().unwrap_err(), Inside::Body);
        drop(body);
        drop(lock.enter(&gate).unwrap());
    }

    #[test]
    fn nested_write_ignores_its_own_closer() {
        let (lock, [gate, other]) = gates();
        let (closed, tried) = (Barrier::new(2), Barrier::new(2));
        thread::scope(|scope| {
            scope.spawn(|| {
                let holder = lock.lock().unwrap();
                holder.close([&other].into_iter(), PATIENCE).unwrap();
                closed.wait();
                tried.wait();
            });
            let _outer = lock.enter(&gate).unwrap();
            closed.wait();
            assert_eq!(lock.enter(&other).unwrap_err(), Inside::Write);
            assert_eq!(lock.enter_all([&*gate, &*other].into_iter()).unwrap_err(), Inside::Write);
            tried.wait();
        });
    }

    /// The closer waits for the outer window, so the inner one must not wait for the closer.
    #[test]
    fn nested_write_to_closing_tree_continues() {
        let (lock, [gate]) = gates();
        thread::scope(|scope| {
            let outer = lock.enter(&gate).unwrap();
            let closer = scope.spawn(|| lock.lock().unwrap().close([&gate].into_iter(), PATIENCE));
            while protocol::is_open(&gate.word) {
                thread::yield_now();
            }
            drop(lock.enter(&gate).unwrap());
            assert!(!closer.is_finished());
            drop(outer);
            closer.join().unwrap().unwrap();
        });
    }

    /// Two words that writers change together, read by closers, who find them equal.
    #[test]
    fn closers_see_whole_writes() {
        let (lock, [gate]) = gates();
        let words = [AtomicU64::new(0), AtomicU64::new(0)];
        let count = if cfg!(miri) { 50 } else { 20_000 };
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..count {
                        let _window = lock.enter(&gate).unwrap();
                        words.iter().for_each(|word| _ = word.fetch_add(1, Ordering::Relaxed));
                    }
                });
            }
            for _ in 0..count / 20 {
                let holder = lock.lock().unwrap();
                holder.close([&gate].into_iter(), PATIENCE).unwrap();
                let [one, two] = [0, 1].map(|i: usize| words[i].load(Ordering::Relaxed));
                assert_eq!(one, two);
            }
        });
        assert_eq!(words[0].load(Ordering::Relaxed), 2 * count);
    }
}
