//! The threads' pins, the global epoch, and the barrier that lets pins be plain stores.

use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, compiler_fence, fence};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::protocol::{self, UNPINNED};

static EPOCH: AtomicU64 = AtomicU64::new(protocol::FIRST_EPOCH);
static SAFE: AtomicU64 = AtomicU64::new(0);
static THREAD_PINS: AtomicPtr<ThreadPin> = AtomicPtr::new(ptr::null_mut());
static THREAD_PIN_COUNT: AtomicUsize = AtomicUsize::new(0);
static ADVANCING: Mutex<Held> = Mutex::new(Held { epoch: 0, since: None });

/// The epoch that some pin is known to hold back, with all later epochs, and the time since when.
struct Held {
    epoch: u64,
    since: Option<Instant>,
}

/// One thread's pin, in cache lines of its own. Records are never freed: a new thread takes over an ended thread's
/// record.
#[repr(align(128))]
struct ThreadPin {
    pin: AtomicU64,
    taken: AtomicBool,
    /// True if this thread's pins need no fence. Kept here because every pin reads it together with `pin`.
    is_fence_free: bool,
    index: usize,
    /// The thread's message to other threads; see [`Announcement`].
    announcement: AtomicU64,
    /// The operating system's id of the thread that has the record, for statistics.
    thread_id: AtomicU32,
    next: *const ThreadPin,
}

/// A thread that has been pinned for a long time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OldPin {
    /// The time that it has been pinned, at least. Measured from an [`advance`], which happens regularly while
    /// things are retired.
    pub age: Duration,
    /// The operating system's id of the thread.
    pub thread_id: u32,
}

// SAFETY: `index` and `next` are written before the record is shared and never again; the rest is atomic.
unsafe impl Sync for ThreadPin {}

thread_local! {
    /// This thread's record, or null before its first pin. Read on every pin, so it has no destructor.
    static MINE: Cell<*const ThreadPin> = const { Cell::new(ptr::null()) };
    /// Returns the record when the thread ends.
    static LEASE: Cell<Option<Lease>> = const { Cell::new(None) };
}

struct Lease(&'static ThreadPin);

impl Drop for Lease {
    fn drop(&mut self) {
        MINE.set(ptr::null());
        // A forgotten pin ends with its thread; otherwise it would hold every epoch back permanently.
        self.0.pin.store(UNPINNED, Ordering::Release);
        self.0.announcement.store(0, Ordering::Release);
        self.0.taken.store(false, Ordering::Release);
    }
}

/// A guard: until it is dropped, nothing that the thread can find from now on is freed. Pins nest.
#[derive(Debug)]
#[must_use]
pub struct Pin {
    thread_pin: &'static ThreadPin,
    outer: u64,
    /// A pin belongs to its thread.
    _not_send: PhantomData<*const ()>,
}

/// Proof that the thread is pinned for at least `'p`. Costs nothing to pass to code that reads memory that only a
/// pin protects.
#[derive(Clone, Copy, Debug)]
pub struct Pinned<'p>(PhantomData<&'p Pin>);

impl Pin {
    /// Returns a proof of the pin, valid until the pin is dropped.
    #[inline(always)]
    #[must_use]
    pub fn pinned(&self) -> Pinned<'_> {
        Pinned(PhantomData)
    }
}

impl std::fmt::Debug for ThreadPin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ThreadPin").field("index", &self.index).field("pin", &self.pin).finish_non_exhaustive()
    }
}

/// Pins the calling thread.
#[inline(always)]
pub fn pin() -> Pin {
    let thread_pin = my_thread_pin();
    let outer = thread_pin.pin.load(Ordering::Relaxed);
    if outer == UNPINNED {
        protocol::enter(&thread_pin.pin, &EPOCH, || light_barrier(thread_pin.is_fence_free));
    }
    Pin { thread_pin, outer, _not_send: PhantomData }
}

impl Drop for Pin {
    #[inline(always)]
    fn drop(&mut self) {
        protocol::leave(&self.thread_pin.pin, self.outer);
    }
}

/// Returns true while the calling thread holds a pin. Such a thread must not wait for a grace period.
#[must_use]
pub fn is_pinned() -> bool {
    my_thread_pin().pin.load(Ordering::Relaxed) != UNPINNED
}

/// Returns a small number that no other live thread has, for choosing among lanes.
#[inline(always)]
#[must_use]
pub fn thread_index() -> usize {
    my_thread_pin().index
}

/// Returns the epoch that tags a thing unlinked before this call.
pub(crate) fn tag() -> u64 {
    protocol::tag(&EPOCH, || light_barrier(my_thread_pin().is_fence_free))
}

/// Returns the epoch that every thread has reached; see `protocol::is_free`. Grows with [`advance`].
#[inline(always)]
#[must_use]
pub fn safe() -> u64 {
    SAFE.load(Ordering::Acquire)
}

/// A moment before some reads. While it is recent, nothing that these reads have found was freed since, so equal places
/// are the same objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Start(u64);

impl Start {
    /// Returns this moment.
    #[must_use]
    pub fn now() -> Start {
        Start(safe())
    }

    /// Returns true if nothing that was found after this moment has been freed. An object that the reads before this
    /// call have found is then not a later one at the same place. False says nothing. The head of module `protocol` has
    /// the argument.
    #[inline]
    #[must_use]
    pub fn is_recent(self) -> bool {
        // The caller's reads come before this load.
        fence(Ordering::Acquire);
        !protocol::is_free(self.0, safe())
    }
}

/// Starts a new epoch and determines how far every thread has come; returns the new [`safe`]. Costs a system call.
pub fn advance() -> u64 {
    advance_and_measure().0
}

/// Returns the thread that has been pinned longest, if any is pinned for longer than an operation takes. Costs a
/// system call.
#[must_use]
pub fn oldest_pin() -> Option<OldPin> {
    let (safe, age) = advance_and_measure();
    // The thread may have moved on since.
    let oldest = thread_pins().find(|thread_pin| thread_pin.pin.load(Ordering::Relaxed) == safe)?;
    (!age.is_zero()).then(|| OldPin { age, thread_id: oldest.thread_id.load(Ordering::Relaxed) })
}

fn advance_and_measure() -> (u64, Duration) {
    let mut held = ADVANCING.lock().unwrap_or_else(PoisonError::into_inner);
    let safe = protocol::advance(&EPOCH, &SAFE, || thread_pins().map(|thread_pin| &thread_pin.pin), heavy_barrier);
    // Current pins have the epoch that begins here: a pin of an earlier epoch was also there the last time.
    let is_held = safe < EPOCH.load(Ordering::Relaxed);
    if !is_held || held.since.is_none() || held.epoch != safe {
        *held = Held { epoch: safe, since: is_held.then(Instant::now) };
    }
    (safe, held.since.map_or(Duration::ZERO, |since| since.elapsed()))
}

/// A word of the calling thread, in the cache line of its pin, that it alone stores and other threads read. 0 at first,
/// and again when the thread ends. The meaning is the user's: crate `transact` announces writes.
#[derive(Clone, Copy, Debug)]
pub struct Announcement {
    thread_pin: &'static ThreadPin,
    /// An announcement belongs to its thread.
    _not_send: PhantomData<*const ()>,
}

impl Announcement {
    /// Returns the calling thread's announcement.
    #[inline(always)]
    #[must_use]
    pub fn mine() -> Announcement {
        Announcement { thread_pin: my_thread_pin(), _not_send: PhantomData }
    }

    /// Returns the word.
    #[inline(always)]
    #[must_use]
    pub fn word(self) -> &'static AtomicU64 {
        &self.thread_pin.announcement
    }

    /// Executes a barrier that pairs with [`heavy_barrier`]: the two order accesses as two sequentially consistent
    /// fences would.
    #[inline(always)]
    pub fn light_barrier(self) {
        light_barrier(self.thread_pin.is_fence_free);
    }
}

/// Returns the announcements of all threads. A thread that is not among them executes its light barrier after this
/// call's preceding heavy barrier.
pub fn announcements() -> impl Iterator<Item = &'static AtomicU64> {
    thread_pins().map(|thread_pin| &thread_pin.announcement)
}

#[inline(always)]
fn my_thread_pin() -> &'static ThreadPin {
    let mine = MINE.get();
    if mine.is_null() {
        return join();
    }
    // SAFETY: `MINE` is null or points at a record, and records are never freed.
    unsafe { &*mine }
}

/// Takes over a record or adds one, at a thread's first pin.
#[cold]
fn join() -> &'static ThreadPin {
    let free = |thread_pin: &&ThreadPin| {
        thread_pin.taken.compare_exchange(false, true, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    };
    let thread_pin = thread_pins().find(free).unwrap_or_else(add_thread_pin);
    thread_pin.thread_id.store(thread_id(), Ordering::Relaxed);
    MINE.set(thread_pin);
    // A thread that is past its destructors keeps the record permanently, which costs 128 bytes.
    let _ = LEASE.try_with(|lease| lease.set(Some(Lease(thread_pin))));
    thread_pin
}

fn add_thread_pin() -> &'static ThreadPin {
    let thread_pin = Box::leak(Box::new(ThreadPin {
        pin: AtomicU64::new(UNPINNED),
        taken: AtomicBool::new(true),
        announcement: AtomicU64::new(0),
        is_fence_free: barriers_are_expedited(),
        index: THREAD_PIN_COUNT.fetch_add(1, Ordering::Relaxed),
        thread_id: AtomicU32::new(0),
        next: THREAD_PINS.load(Ordering::Acquire),
    }));
    while let Err(head) =
        THREAD_PINS.compare_exchange(thread_pin.next.cast_mut(), thread_pin, Ordering::AcqRel, Ordering::Acquire)
    {
        thread_pin.next = head;
    }
    thread_pin
}

fn thread_pins() -> impl Iterator<Item = &'static ThreadPin> {
    let mut next = THREAD_PINS.load(Ordering::Acquire).cast_const();
    std::iter::from_fn(move || {
        // SAFETY: the list holds leaked records only, and ends in null.
        let thread_pin = unsafe { next.as_ref() }?;
        next = thread_pin.next;
        Some(thread_pin)
    })
}

/// Returns the calling thread's id. Miri supports no such call.
fn thread_id() -> u32 {
    // SAFETY: the call takes nothing and cannot fail.
    if cfg!(miri) { 0 } else { unsafe { libc::gettid() as u32 } }
}

/// Registers the process for expedited barriers, once; returns true if the kernel grants them.
pub(crate) fn barriers_are_expedited() -> bool {
    static GRANTED: OnceLock<bool> = OnceLock::new();
    // Miri does not support the call; fences are right everywhere.
    *GRANTED.get_or_init(|| !cfg!(miri) && membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED))
}

/// Makes every running thread of the process execute a barrier before it returns. If light barriers are fences,
/// only the caller executes one.
pub fn heavy_barrier() {
    fence(Ordering::SeqCst);
    if barriers_are_expedited() {
        let done = membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED);
        assert!(done, "the kernel took back expedited barriers after it had granted them");
    }
}

/// Executes a barrier that pairs with heavy ones: for the compiler only, if heavy barriers reach every thread.
#[inline(always)]
fn light_barrier(is_fence_free: bool) {
    if is_fence_free {
        compiler_fence(Ordering::SeqCst);
    } else {
        fence(Ordering::SeqCst);
    }
}

fn membarrier(command: libc::c_int) -> bool {
    // SAFETY: the call takes two integers and accesses no memory of this process.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pin_holds_epoch_back_and_nests() {
        let outer = pin();
        let held = outer.thread_pin.pin.load(Ordering::Relaxed);
        for _ in 0..3 {
            assert!(advance() <= held);
        }
        drop(pin());
        assert!(is_pinned(), "the inner pin must not unpin the outer one");
        drop(outer);
        assert!(!is_pinned());
    }

    #[test]
    fn thread_that_stays_pinned_is_named() {
        let pin = pin();
        let is_named = || oldest_pin().is_some_and(|oldest| oldest.thread_id == thread_id());
        assert!((0..1_000_000).any(|_| is_named()), "{:?}", oldest_pin());
        drop(pin);
        assert!((0..1_000_000).any(|_| !is_named()));
    }

    #[test]
    fn forgotten_pin_ends_with_its_thread() {
        let held = std::thread::spawn(|| {
            let pin = pin();
            let held = pin.thread_pin.pin.load(Ordering::Relaxed);
            std::mem::forget(pin);
            held
        });
        let held = held.join().unwrap();
        while advance() <= held + 1 {
            std::thread::yield_now();
        }
    }

    #[test]
    fn ended_threads_release_their_pins() {
        let index = || std::thread::spawn(|| drop(pin())).join();
        index().unwrap();
        let before = thread_pins().count();
        for _ in 0..50 {
            index().unwrap();
        }
        assert!(thread_pins().count() <= before + 8, "other tests may run threads, but not fifty");
    }
}
