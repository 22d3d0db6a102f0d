//! Walks over all items, one leaf a step.

use std::ops::Bound;

use engine::{Cursor, Error, OnDamaged, OnItem};
use pbtree::{Direction, Value};
use pmem::{Dram, Medium};

use crate::copy::expiry_of;
use crate::error::from_tree;
use crate::items::Items;
use crate::pages::{Copied, Damage};

impl<M: Medium, D: Dram> Items<M, D> {
    /// Walks as [`Walks::walk`](engine::Walks::walk) does, including expired keys. Always checks values, because
    /// dumps and backups use this.
    pub(crate) fn walk_all(&self, cursor: &Cursor, each: &mut OnItem<'_>) -> Result<Cursor, Error> {
        self.walk_by(Damage::Refused, cursor, each)
    }

    /// Walks for the reaper without stopping at damage; otherwise keys behind the damage would never be reaped.
    pub(crate) fn walk_skipping_unreadable(&self, cursor: &Cursor, each: &mut OnItem<'_>) -> Result<Cursor, Error> {
        self.walk_by(Damage::Skipped, cursor, each)
    }

    /// Shows every intact item in one call. No thread writes.
    pub(crate) fn walk_all_skipping_damage(
        &self,
        each: &mut OnItem<'_>,
        damaged: &mut OnDamaged<'_>,
    ) -> Result<(), Error> {
        let mut show = |key: &[u8], value: &Value<'_>| {
            let expiry = expiry_of(value);
            if !self.is_past(expiry) {
                each(key, value.bytes, expiry);
            }
        };
        let mut ended = Ok(());
        let walked = self.tree().each_intact(&mut show, &mut |error| {
            damaged(from_tree(error)).map_err(|error| {
                ended = Err(error);
                pbtree::Error::Stopped
            })
        });
        ended.and(walked.map_err(from_tree))
    }

    fn walk_by(&self, damage: Damage, cursor: &Cursor, each: &mut OnItem<'_>) -> Result<Cursor, Error> {
        let from = match cursor {
            Cursor::Start => Bound::Unbounded,
            Cursor::After(key) => Bound::Excluded(&key[..]),
            Cursor::Number(_) | Cursor::End => return Ok(Cursor::End),
        };
        let last = self.tree().medium().once(|| self.visit_leaf(damage, from, each))?;
        Ok(last.map_or(Cursor::End, Cursor::After))
    }

    /// Shows the items of the next leaf that has any, expired or not, and returns the last one's key; `None` at the
    /// end. The last leaf is the end even if keys are added behind the shown ones: otherwise a walk would never end
    /// alongside a writer of ascending keys.
    fn visit_leaf(&self, damage: Damage, from: Bound<&[u8]>, each: &mut OnItem<'_>) -> Result<Option<Vec<u8>>, Error> {
        let (mut page, mut from) = (Copied::default(), from.map(<[u8]>::to_vec));
        loop {
            page.turn(self.tree(), from.as_ref().map(Vec::as_slice), damage)?;
            if let Some(last) = page.last() {
                page.items().for_each(|item| each(item.key, item.value, item.expiry()));
                return Ok(page.next(Direction::Forward).is_some().then(|| last.key.to_vec()));
            }
            match page.next(Direction::Forward) {
                Some(next) => from = next.map(<[u8]>::to_vec),
                None => return Ok(None),
            }
        }
    }
}
