//! Reports of keys that appear and disappear, for counts of the parts of a store.
//!
//! An engine reports each marked key that a write adds or removes, once the change is published and before the write
//! returns. So while all writes wait, every change has been reported. The reaper is no caller's write: it takes a
//! [`Removal`] for each key, and gets none while a [`Pause`] lives.

use std::fmt;
use std::sync::OnceLock;

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The first byte of marked keys.
pub const MARK: u8 = 0xFF;

/// Receives a marked key, and 1 if it was added or -1 if it was removed. May run under locks of the engine.
pub type OnKeyChange = dyn Fn(&[u8], i64) + Send + Sync;

/// The reports of an engine about marked keys.
#[derive(Default)]
pub struct KeyChanges {
    on_change: OnceLock<Box<OnKeyChange>>,
    removals: RwLock<()>,
}

impl fmt::Debug for KeyChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyChanges").field("is_set", &self.on_change.get().is_some()).finish_non_exhaustive()
    }
}

/// A guard: the reaper may remove a key and report it.
#[derive(Debug)]
#[must_use]
pub struct Removal<'t> {
    _guard: Option<RwLockReadGuard<'t, ()>>,
}

/// A guard: the reaper removes no marked key.
#[derive(Debug)]
#[must_use]
pub struct Pause<'t> {
    _guard: RwLockWriteGuard<'t, ()>,
}

impl KeyChanges {
    /// Sets the receiver of the reports, once for an opening.
    pub fn set(&self, on_change: Box<OnKeyChange>) {
        // A second receiver would miss keys: the first stays.
        let _ = self.on_change.set(on_change);
    }

    /// Reports a key that a write has added.
    #[inline(always)]
    pub fn added(&self, key: &[u8]) {
        if key.first() == Some(&MARK) {
            self.report(key, 1);
        }
    }

    /// Reports a key that a write has removed.
    #[inline(always)]
    pub fn removed(&self, key: &[u8]) {
        if key.first() == Some(&MARK) {
            self.report(key, -1);
        }
    }

    /// Reports a key whose item was replaced by another one, or by none.
    #[inline(always)]
    pub fn replaced(&self, key: &[u8], was_present: bool, is_present: bool) {
        match (was_present, is_present) {
            (false, true) => self.added(key),
            (true, false) => self.removed(key),
            _ => {}
        }
    }

    #[cold]
    #[inline(never)]
    fn report(&self, key: &[u8], by: i64) {
        if let Some(on_change) = self.on_change.get() {
            on_change(key, by);
        }
    }

    /// Returns a guard under which the reaper removes the key, or `None` during a pause: it tries again later. Never
    /// waits.
    pub fn removal(&self, key: &[u8]) -> Option<Removal<'_>> {
        match key.first() {
            Some(&MARK) => self.removals.try_read().map(|guard| Removal { _guard: Some(guard) }),
            _ => Some(Removal { _guard: None }),
        }
    }

    /// Waits for removals under way, and keeps the reaper from further ones. The caller holds no lock of the engine.
    pub fn pause(&self) -> Pause<'_> {
        Pause { _guard: self.removals.write() }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;

    #[test]
    fn appearing_or_disappearing_marked_keys_are_reported() {
        let (key_changes, seen) = (KeyChanges::default(), Arc::new(Mutex::new(Vec::new())));
        key_changes.added(&[MARK, 1]);
        let reports = Arc::clone(&seen);
        key_changes.set(Box::new(move |key, by| reports.lock().push((key.to_vec(), by))));
        [&b""[..], b"key", &[0xFE, MARK]].into_iter().for_each(|key| key_changes.added(key));
        key_changes.replaced(&[MARK], false, true);
        key_changes.replaced(&[MARK], true, true);
        key_changes.replaced(&[MARK, 7], true, false);
        key_changes.replaced(&[MARK, 7], false, false);
        assert_eq!(*seen.lock(), [(vec![MARK], 1), (vec![MARK, 7], -1)]);
    }

    #[test]
    fn pause_keeps_marked_keys_from_removal() {
        let key_changes = KeyChanges::default();
        let pause = key_changes.pause();
        assert!(key_changes.removal(&[MARK]).is_none());
        assert!(key_changes.removal(b"key").is_some());
        drop(pause);
        assert!(key_changes.removal(&[MARK]).is_some());
    }
}
