//! A store created where writes survived more than they do now.

use hikv::{Durability, OpenError, Options, Store};

use crate::bad_files::store::{Closed, assert_holds, assert_names};

/// The word of a region that records the level it was created for (docs/format/region.md).
const MADE_FOR: usize = 9_536;
const PROCESS: u64 = 1;
const POWER: u64 = 3;

fn word(store: &Closed) -> Option<u64> {
    pmem::unseal(u64::from_le_bytes(store.bytes()[MADE_FOR..MADE_FOR + 8].try_into().unwrap()))
}

#[test]
fn lowered_durability_is_refused_unless_requested() {
    let store = Closed::new();
    assert_eq!(word(&store), Some(PROCESS), "a new region says what it was made for");
    let power = pmem::seal(POWER).to_le_bytes();
    store.alter(|bytes| bytes[MADE_FOR..MADE_FOR + 8].copy_from_slice(&power));
    let error = Store::open(store.path()).unwrap_err();
    let (wanted, given) = (Durability::Power, Durability::Process);
    assert!(matches!(error, OpenError::Durability { wanted: w, given: g, .. } if (w, g) == (wanted, given)), "{error}");
    assert_names(&error, &store.file(), &["process, not power", "when the store was created", "a lower level"]);
    assert_holds(&Store::open_read_only(store.path()).unwrap(), 0..2);
    let less = Options::new().durability(Durability::Process).open(store.path()).unwrap();
    assert_holds(&less, 0..2);
    assert_eq!(less.durability(), Durability::Process);
    less.put("written", "with less").unwrap();
    drop(less);
    // The recorded level does not change: the next opening without a level is refused again.
    assert_eq!(word(&store), Some(POWER));
    Store::open(store.path()).unwrap_err();
}

/// Written by programs without such a word, or damaged: the level is unknown.
#[test]
fn store_without_level_opens_as_before() {
    let store = Closed::new();
    for bytes in [[0; 8], [0xFF; 8], pmem::seal(4).to_le_bytes()] {
        store.alter(|region| region[MADE_FOR..MADE_FOR + 8].copy_from_slice(&bytes));
        store.assert_intact();
    }
}
