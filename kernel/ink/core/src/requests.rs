//! Puts, gets and deletes, with lengths that C has checked.

use core::ptr::NonNull;

use pbtree::{Change, Figures, NewValue, Value};

use crate::errno::{self, EEXIST, EMSGSIZE, ENOENT, EUCLEAN};
use crate::store::{Store, is_past};

/// The condition of a put.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    Always,
    IfAbsent,
    IfPresent,
}

impl When {
    /// Converts the number in `ink.h`.
    pub(crate) fn of(number: u32) -> Option<When> {
        [When::Always, When::IfAbsent, When::IfPresent].get(number as usize).copied()
    }

    fn allows(self, is_there: bool) -> bool {
        match self {
            When::Always => true,
            When::IfAbsent => !is_there,
            When::IfPresent => is_there,
        }
    }
}

fn is_live(value: &Value<'_>) -> bool {
    !is_past(value.expiry)
}

/// A buffer for an answer.
pub(crate) struct Room {
    start: NonNull<u8>,
    len: usize,
}

impl Room {
    /// # Safety
    /// `start` is writable for `len` bytes, and only this value uses them while it lives.
    pub(crate) unsafe fn new(start: NonNull<u8>, len: usize) -> Room {
        Room { start, len }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Copies bytes to `at`.
    pub(crate) fn copy(&mut self, at: usize, bytes: &[u8]) {
        assert!(bytes.len() <= self.len && at <= self.len - bytes.len(), "an answer beyond its room");
        // SAFETY: the target is in the buffer (just checked), which nothing else uses, so `bytes` are elsewhere.
        unsafe { self.start.add(at).copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) }
    }
}

impl Store {
    /// Puts a value.
    pub(crate) fn put(&self, agent: usize, key: &[u8], value: &[u8], when: When) -> Result<(), i64> {
        let change = Change::Put(NewValue { bytes: value, expiry: None });
        let mut allowed = |held: Option<&Value<'_>>| when.allows(held.is_some_and(is_live));
        let written = self.with_room(|| self.tree.write(agent, key, change, &mut allowed))?;
        match (written.is_done, when) {
            (true, _) => Ok(()),
            (false, When::IfPresent) => Err(ENOENT),
            (false, _) => Err(EEXIST),
        }
    }

    /// Copies a value and returns its length. If the buffer is too small, nothing is copied.
    pub(crate) fn get(&self, key: &[u8], room: &mut Room) -> Result<(u64, i64), i64> {
        let copied = self.tree.get(key, |value| copy(value, room));
        copied.map_err(errno::of)?.unwrap_or(Err(ENOENT))
    }

    /// Deletes a key.
    pub(crate) fn remove(&self, agent: usize, key: &[u8]) -> Result<(), i64> {
        let mut was_live = false;
        let mut allowed = |held: Option<&Value<'_>>| {
            was_live = held.is_some_and(is_live);
            held.is_some()
        };
        self.with_room(|| self.tree.write(agent, key, Change::Delete, &mut allowed))?;
        self.expect_merges();
        if was_live { Ok(()) } else { Err(ENOENT) }
    }

    /// Checks the entire store, and counts and logs its contradictions.
    pub(crate) fn check(&self) -> Result<(Figures, u64), i64> {
        let mut damage_count = 0;
        let mut on_damage = |damage: pbtree::Damage| {
            damage_count += 1;
            crate::host::say(&format_args!("damage at offset {:#x}: {}", damage.offset, damage.what));
        };
        let checked = self.tree.check_while(&mut on_damage, &mut || !crate::host::is_killed());
        Ok((checked.map_err(errno::of)?, damage_count))
    }
}

fn copy(value: &Value<'_>, room: &mut Room) -> Result<(u64, i64), i64> {
    match () {
        () if !is_live(value) => Err(ENOENT),
        () if !value.is_intact() => Err(EUCLEAN),
        () if value.bytes.len() > room.len() => Ok((value.bytes.len() as u64, EMSGSIZE)),
        () => {
            room.copy(0, value.bytes);
            Ok((value.bytes.len() as u64, 0))
        }
    }
}
