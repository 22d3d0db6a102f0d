//! Tests of an engine whose region has memory for few pages, which are evicted and read again before every operation.

use pmem_sim::{Crashable, Model, SimDisk};

use crate::crashed::{Crashed, Made};
use crate::crowd;
use crate::engine_conforms::engine_conforms;
use crate::explore::{Counts, Settings, catches, survives};
use crate::extent::Extent;
use crate::script::Script;

/// Explores the scripts. Then catches the broken variants of eviction by the first one, which writes, reopens and
/// reads.
///
/// # Panics
/// At a violation, or if a broken variant is not caught.
pub fn evictions_survive<K: Made<Medium = SimDisk>>(scripts: &[Script], settings: &Settings) -> Counts {
    let counts = survives::<Crashed<K>>(scripts, settings);
    for canary in [journal::canary::EVICTED_WHILE_STORED, journal::canary::LOADED_WITHOUT_REDO] {
        catches::<Crashed<K>>(canary, &scripts[..1], settings);
    }
    counts
}

/// Compares all operations with the answers of a map, and judges histories of threads, with ranges if the engine has
/// `scans`.
///
/// # Panics
/// At the first difference, or at a history that no order of the calls explains.
pub fn evictions_change_no_answer<K: Made<Medium = SimDisk>>(scans: bool) {
    let compared = engine_conforms::<K>(|| SimDisk::new(0, Model::Disk), 300, 0..Extent::pick(2, 8));
    assert!(compared.is_ok(), "{compared:?}");
    crowd::histories_on_disk_are_linearizable::<K>(scans);
}
