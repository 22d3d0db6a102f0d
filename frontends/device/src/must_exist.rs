//! Feature 20h, bit 0: deleting a missing key is an error. The feature survives resets and power cycles (Key Value
//! command set, figure 33) as an item of the store.
//!
//! The item's key is longer than the command set allows: no host can address the item, and no list shows it.
//!
//! # Steps of a change
//! 1. The item is put, or deleted if the feature gets its default. A crash before its completion leaves either value.
//! 2. Deletes use the new value. The command is completed when step 1 is durable.

use std::sync::atomic::{AtomicBool, Ordering};

use hikv::{Error, Store};
use nvme::Key;
use parking_lot::Mutex;

const ITEM: &[u8] = b"hikv.device/feature-20h";
const _: () = assert!(ITEM.len() > Key::BYTES_MAX);

/// The feature of a store.
pub(crate) struct MustExist {
    is_set: AtomicBool,
    /// Held during a change, so that the item and the flag stay consistent.
    changing: Mutex<()>,
}

impl MustExist {
    /// Loads the feature from the store.
    pub(crate) fn of(store: &Store) -> MustExist {
        let is_set = store.contains(ITEM).unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot read feature 20h; using its default");
            false
        });
        MustExist { is_set: AtomicBool::new(is_set), changing: Mutex::new(()) }
    }

    pub(crate) fn get(&self) -> bool {
        self.is_set.load(Ordering::Relaxed)
    }

    /// Changes the feature.
    pub(crate) fn set(&self, store: &Store, is_set: bool) -> Result<(), Error> {
        let _changing = self.changing.lock();
        if is_set != self.get() {
            if is_set {
                store.put(ITEM, b"")?
            } else {
                store.delete(ITEM).map(drop)?
            }
            self.is_set.store(is_set, Ordering::Relaxed);
        }
        Ok(())
    }
}
