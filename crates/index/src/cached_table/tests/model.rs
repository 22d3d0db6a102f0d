//! Explores every interleaving of a reader and writers, with the reorderings that the memory model allows, up to a
//! number of preemptions. These broken variants must be caught: one without a fence, one that hides the copy after
//! publishing, one that brings an item in although a write began, one that shows an item although another write was
//! pending, and one that shows an item before that is durable.

use std::sync::atomic::Ordering::SeqCst;

use loom::sync::atomic::AtomicU64;
use loom::sync::{Arc, Mutex};
use loom::thread;
use testkit::Extent;
use word::model::{Weakened, Weakening, explore};

use super::super::lines::{Lines, Wide};
use crate::cached_table::{CachedTable, Lookup, LookupKey, NewCopy};

mod served;

/// The omission of a model.
trait Variant: Weakening {
    /// The preemptions of a run.
    const PREEMPTION_COUNT: usize = 2;
    const IS_SOUND: bool = false;
    const HIDES_LATE: bool = false;
    const BRINGS_IN_LATE: bool = false;
    const SHOWS_BESIDE_OTHERS: bool = false;
    const SHOWS_EARLY: bool = false;
    /// Variants of threads that serve the table: `served`.
    const SERVES_SHOWN: bool = false;
    const COMPLETES_UNWRITTEN: bool = false;
    const SHOWS_UNSIGNALLED: bool = false;
    const SHOWS_UNCHANGED: bool = false;
}

/// A sample of the tests allows the sound table one preemption.
fn preemption_count<T: Variant>() -> usize {
    if T::IS_SOUND { Extent::pick(1, T::PREEMPTION_COUNT) } else { T::PREEMPTION_COUNT }
}

impl<T: Variant> Wide for Weakened<T> {}

struct Sound;
struct NoReaderFence;
struct NoWriterFence;
struct HidesLate;
struct BringsInLate;
struct ShowsBesideOthers;
struct ShowsEarly;

impl Weakening for Sound {}
impl Weakening for HidesLate {}
impl Weakening for BringsInLate {}
impl Weakening for ShowsBesideOthers {}
impl Weakening for ShowsEarly {}

impl Weakening for NoReaderFence {
    fn has_fence(asked: std::sync::atomic::Ordering) -> bool {
        asked != std::sync::atomic::Ordering::Acquire
    }
}

impl Weakening for NoWriterFence {
    fn has_fence(asked: std::sync::atomic::Ordering) -> bool {
        asked != std::sync::atomic::Ordering::Release
    }
}

impl Variant for Sound {
    const IS_SOUND: bool = true;
}
impl Variant for NoReaderFence {}
impl Variant for NoWriterFence {}

impl Variant for HidesLate {
    const PREEMPTION_COUNT: usize = 3;
    const HIDES_LATE: bool = true;
}

impl Variant for BringsInLate {
    const BRINGS_IN_LATE: bool = true;
}

impl Variant for ShowsBesideOthers {
    const SHOWS_BESIDE_OTHERS: bool = true;
}

impl Variant for ShowsEarly {
    const SHOWS_EARLY: bool = true;
}

const KEY: LookupKey<'_> = LookupKey { bytes: b"key", signature: 7 };

/// A store of one key. Its value is the number of its writes, 0 for none. It also has the durable value, and the
/// one that writers have acknowledged.
struct Store<T: Variant> {
    cache: CachedTable<Weakened<T>>,
    lock: Mutex<()>,
    held: AtomicU64,
    durable: AtomicU64,
    acknowledged: AtomicU64,
}

fn copy<R>(number: u64, with: impl FnOnce(&NewCopy<'_>) -> R) -> R {
    with(&NewCopy { value: &number.to_le_bytes(), version: [number; 2], expiry_ms: u64::MAX })
}

impl<T: Variant> Store<T> {
    fn new() -> Arc<Store<T>> {
        let cache = CachedTable::of(Lines::own(1), Lines::own(4), 1, |_| thread::yield_now());
        cache.copies.notes_reads.store(true, SeqCst);
        let zero = || AtomicU64::new(0);
        Arc::new(Store { cache, lock: Mutex::new(()), held: zero(), durable: zero(), acknowledged: zero() })
    }

    /// Puts the next number. With `is_long`, the value is longer than the longest copy.
    fn put(&self, is_long: bool) {
        let lock = self.lock.lock().unwrap();
        let early = (!T::HIDES_LATE).then(|| self.cache.begin(KEY));
        let number = self.held.load(SeqCst) + 1;
        let early = early.map(|mut write| {
            copy(number, |copy| write.hand_off(copy));
            write
        });
        self.held.store(number, SeqCst);
        let mut write = early.unwrap_or_else(|| self.cache.begin(KEY));
        drop(lock);
        if T::SHOWS_EARLY {
            copy(number, |copy| write.put(copy));
            self.durable.fetch_max(number, SeqCst);
        } else {
            self.durable.fetch_max(number, SeqCst);
            if T::SHOWS_BESIDE_OTHERS {
                write.pretend_alone();
            }
            if is_long {
                drop(write);
            } else if T::SHOWS_UNSIGNALLED {
                write.pretend_written();
            } else {
                copy(number, |copy| write.put(copy));
            }
        }
        self.acknowledged.fetch_max(number, SeqCst);
    }

    /// Removes everything. The key's next value is another number.
    fn clear(&self) {
        let clear = self.cache.begin_clear();
        let lock = self.lock.lock().unwrap();
        self.held.store(GONE, SeqCst);
        drop(lock);
        self.durable.fetch_max(GONE, SeqCst);
        clear.cleared();
        self.acknowledged.fetch_max(GONE, SeqCst);
    }

    /// Like `get`, without the table.
    fn get_stored(&self) -> u64 {
        let number = self.held.load(SeqCst);
        self.durable.fetch_max(number, SeqCst);
        number
    }

    /// Reads the key. The result must be a value that the key held at some moment of the read, and that no crash
    /// removes.
    fn get(&self) -> u64 {
        let acknowledged = self.acknowledged.load(SeqCst);
        let lookup = self.cache.lookup(
            KEY,
            || 0,
            |copied| {
                let number = u64::from_le_bytes(copied.value.try_into().expect("it has eight bytes"));
                assert_eq!(copied.version, [number; 2], "a torn copy was returned");
                number
            },
        );
        let number = match lookup {
            Lookup::Hit(number) => number,
            Lookup::Absent => {
                assert!(matches!(self.held.load(SeqCst), 0 | GONE..), "a present key was reported absent");
                return acknowledged;
            }
            Lookup::Miss(permit) => {
                let number = self.get_stored();
                let permit = if T::BRINGS_IN_LATE { self.cache.permit(KEY) } else { permit };
                if let Some(permit) = permit.filter(|_| number != 0 && number != GONE) {
                    copy(number, |copy| self.cache.admit(permit, KEY, copy));
                }
                number
            }
        };
        assert!(number >= acknowledged, "a read returned {number}, but {acknowledged} was acknowledged before");
        assert!(number <= self.durable.load(SeqCst), "a read returned a value that may be lost");
        number
    }
}

const GONE: u64 = 100;

/// Two writes, and reads of another thread. The first read may bypass the table; a later one returns no older item.
fn reader_beside_writer<T: Variant>(is_first_past: bool) {
    explore(preemption_count::<T>(), move || {
        let store = Store::<T>::new();
        store.put(false);
        let reader = Arc::clone(&store);
        let reader = thread::spawn(move || {
            let first = if is_first_past { reader.get_stored() } else { reader.get() };
            assert!(reader.get() >= first, "a later read returned an older item");
        });
        store.put(false);
        reader.join().unwrap();
        assert_eq!(store.get(), 2);
    });
}

/// Like `reader_beside_writer`, with a store whose item is not in the table.
fn reader_brings_in<T: Variant>(is_long: bool) {
    explore(preemption_count::<T>(), move || {
        let store = Store::<T>::new();
        store.cache.is_unfilled();
        store.held.store(1, SeqCst);
        store.durable.store(1, SeqCst);
        let writer = Arc::clone(&store);
        let writer = thread::spawn(move || writer.put(is_long));
        let first = store.get();
        assert!(store.get() >= first, "a later read returned an older item");
        writer.join().unwrap();
        assert_eq!(store.get(), 2);
    });
}

/// Two writers of the key; in the end the table has the value that was published last.
fn writers_beside_each_other<T: Variant>() {
    explore(preemption_count::<T>(), || {
        let store = Store::<T>::new();
        let writer = Arc::clone(&store);
        let writer = thread::spawn(move || writer.put(false));
        store.put(false);
        writer.join().unwrap();
        assert_eq!(store.get(), 2);
    });
}

fn clear_beside_writer<T: Variant>() {
    explore(preemption_count::<T>(), || {
        let store = Store::<T>::new();
        let writer = Arc::clone(&store);
        let writer = thread::spawn(move || writer.put(false));
        store.clear();
        writer.join().unwrap();
        let held = store.held.load(SeqCst);
        match store.cache.lookup(KEY, || 0, |copied| copied.version[0]) {
            Lookup::Hit(number) => assert_eq!(number, held, "a copy is not the store's item"),
            Lookup::Absent => assert_eq!(held, GONE, "a present key was reported absent"),
            Lookup::Miss(_) => {}
        }
    });
}

#[test]
fn read_returns_current_value() {
    reader_beside_writer::<Sound>(true);
}

#[test]
#[ignore = "many seconds"]
fn both_reads_return_current_values() {
    reader_beside_writer::<Sound>(false);
}

#[test]
fn filled_copy_is_current_value() {
    reader_brings_in::<Sound>(false);
    reader_brings_in::<Sound>(true);
}

#[test]
fn of_two_writes_the_last_one_stays() {
    writers_beside_each_other::<Sound>();
}

#[test]
fn cleared_copies_are_gone() {
    clear_beside_writer::<Sound>();
}

#[test]
#[should_panic(expected = "a present key was reported absent")]
fn look_without_its_fence_is_caught() {
    reader_beside_writer::<NoReaderFence>(false);
}

#[test]
#[should_panic(expected = "a present key was reported absent")]
fn lock_without_its_fence_is_caught() {
    reader_beside_writer::<NoWriterFence>(false);
}

#[test]
#[should_panic(expected = "a later read returned an older item")]
fn copy_that_is_hidden_late_is_caught() {
    reader_beside_writer::<HidesLate>(true);
}

#[test]
#[should_panic(expected = "was acknowledged before")]
fn late_fill_is_caught() {
    reader_brings_in::<BringsInLate>(true);
}

#[test]
#[should_panic(expected = "was acknowledged before")]
fn write_missing_another_is_caught() {
    writers_beside_each_other::<ShowsBesideOthers>();
}

#[test]
#[should_panic(expected = "a copy is not the store's item")]
fn write_missing_clear_is_caught() {
    clear_beside_writer::<ShowsBesideOthers>();
}

#[test]
#[should_panic(expected = "a read returned a value that may be lost")]
fn item_published_early_is_caught() {
    reader_beside_writer::<ShowsEarly>(false);
}
