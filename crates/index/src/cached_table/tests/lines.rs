//! The paper's bound (section IV.B): a search reads at most two lines of DRAM. Every load of the table's words is
//! recorded.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use pmem::Backoff;
use word::Word;

use super::super::lines::{Line, Lines, Wide};
use crate::cached_table::{CachedTable, Lookup, LookupKey, NewCopy};

thread_local! {
    /// The places of this thread's loads and updates.
    static TOUCHED: RefCell<BTreeSet<usize>> = const { RefCell::new(BTreeSet::new()) };
}

/// A word that records every access.
#[repr(transparent)]
struct Noted(AtomicU64);

impl Wide for Noted {}

impl Noted {
    fn noted(&self) -> &AtomicU64 {
        TOUCHED.with_borrow_mut(|touched| touched.insert(std::ptr::from_ref(self).addr()));
        &self.0
    }
}

macro_rules! noted {
    ($($method:ident($($argument:ident),*) -> $answer:ty;)*) => {
        $(fn $method(&self, $($argument: u64,)* ordering: Ordering) -> $answer {
            self.noted().$method($($argument,)* ordering)
        })*
    };
}

impl Word for Noted {
    fn new(word: u64) -> Noted {
        Noted(AtomicU64::new(word))
    }

    noted! {
        load() -> u64;
        store(word) -> ();
        fetch_add(by) -> u64;
        fetch_sub(by) -> u64;
        fetch_and(bits) -> u64;
        fetch_or(bits) -> u64;
        fetch_max(word) -> u64;
    }

    fn compare_exchange(&self, current: u64, new: u64, success: Ordering, failure: Ordering) -> Result<u64, u64> {
        self.noted().compare_exchange(current, new, success, failure)
    }

    fn compare_exchange_weak(&self, current: u64, new: u64, success: Ordering, failure: Ordering) -> Result<u64, u64> {
        self.noted().compare_exchange_weak(current, new, success, failure)
    }

    fn fence(ordering: Ordering) {
        std::sync::atomic::fence(ordering);
    }
}

const KEY_COUNT: u64 = 3000;

fn key(number: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[8..].copy_from_slice(&number.to_le_bytes());
    key
}

fn lookup_key(key: &[u8; 16]) -> LookupKey<'_> {
    let [_, number] = [0, 8].map(|at: usize| u64::from_le_bytes(*key[at..].first_chunk().unwrap()));
    LookupKey { bytes: key, signature: (number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) }
}

/// Returns the result of a search, and the number of the table's lines that it read.
fn lines_of_lookup(table: &CachedTable<Noted>, number: u64) -> (Lookup<()>, usize) {
    TOUCHED.take();
    let lookup = table.lookup(lookup_key(&key(number)), || 0, |copied| assert_eq!(copied.value, [number as u8; 15]));
    // Lines are counted within each part, from the part's first one on.
    let line = |at: &usize| {
        let starts = [table.buckets.lines(), table.copies.lines()].map(|lines| std::ptr::from_ref(&lines[0]).addr());
        let start = starts.into_iter().filter(|start| start <= at).max().expect("it is a word of the table");
        (start, (at - start) / size_of::<Line<Noted>>())
    };
    (lookup, TOUCHED.take().iter().map(line).collect::<BTreeSet<_>>().len())
}

#[test]
fn search_reads_two_lines_at_most() {
    let table = CachedTable::of(Lines::<Noted>::own(2048), Lines::own(4096), 1, Backoff::relax);
    for number in 0..KEY_COUNT {
        table.begin(lookup_key(&key(number))).put(&NewCopy {
            value: &[number as u8; 15],
            version: [1, 2],
            expiry_ms: u64::MAX,
        });
    }
    for number in 0..KEY_COUNT {
        let (lookup, lines) = lines_of_lookup(&table, number);
        assert!(matches!(lookup, Lookup::Hit(())) && lines == 2, "{lines} of a key that is there");
        let (lookup, lines) = lines_of_lookup(&table, KEY_COUNT + number);
        assert!(matches!(lookup, Lookup::Absent) && lines <= 2, "{lines} of a key that is not");
    }
}
