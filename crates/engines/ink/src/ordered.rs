//! Ordered scans.

use std::ops::{Bound, ControlFlow};

use engine::{Cursor, Damage, Error, OnDamaged, OnItem, OrderedEngine, ScanCursor, Verify, Visit};
use pbtree::{Direction, Ended, Value};
use pmem::{Dram, Medium};

use crate::Ink;
use crate::copy::expiry_of;
use crate::error::from_tree;
use crate::pages::Copied;

/// The most pages shown in one call: dozens of items for short scans, hundreds for long ones.
const PAGES_MAX: usize = 8;

impl<M: Medium, D: Dram> OrderedEngine for Ink<M, D> {
    fn scan(&self, cursor: &mut ScanCursor, each: &mut Visit<'_>) -> Result<bool, Error> {
        let direction = match cursor.direction() {
            engine::Direction::Forward => Direction::Forward,
            engine::Direction::Backward => Direction::Backward,
        };
        let mut scan = self.tree.scanning(direction);
        for _ in 0..PAGES_MAX {
            let (from, _, page) = cursor.parts::<Copied>();
            let ended = page.follow(&mut scan, from)?;
            if let Some(i) = self.visit_page(page, each)? {
                cursor.continue_at_state::<Copied>(|page| page.behind(i));
                return Ok(false);
            }
            cursor.continue_at_state::<Copied>(|page| page.behind_all(ended, direction));
            if ended == Ended::AtEnd {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn check_order(&self, damaged: &mut dyn FnMut(Damage)) -> Result<u64, Error> {
        let mut on_damage =
            |found: pbtree::Damage| damaged(Damage { offset: found.offset, what: found.what.to_owned() });
        Ok(self.tree.check(&mut on_damage).map_err(from_tree)?.key_count)
    }
}

/// A function that reads a page: [`Ink::turn_of_whole`] or [`Ink::turn_skipping_damage`].
type Turn<M, D> = fn(&Ink<M, D>, &mut Copied, Bound<&[u8]>, Direction) -> Result<(), Error>;

impl<M: Medium, D: Dram> Ink<M, D> {
    /// Shows a page's items. Returns the number of the item after which `each` stopped.
    fn visit_page(&self, page: &Copied, each: &mut Visit<'_>) -> Result<Option<usize>, Error> {
        for (i, item) in page.items().enumerate() {
            if self.is_past(item.expiry()) {
                continue;
            }
            if self.verify > Verify::Nothing {
                item.check_intact()?;
            }
            if each(item.key, item.value) == ControlFlow::Break(()) {
                return Ok(Some(i));
            }
        }
        Ok(None)
    }

    /// Walks as [`Engine::walk`](engine::Engine::walk) does, including expired keys. Always checks values, because
    /// dumps and backups use this.
    pub(crate) fn walk_all(&self, cursor: &Cursor, each: &mut OnItem<'_>) -> Result<Cursor, Error> {
        self.walk_by(Ink::turn_of_whole, cursor, each)
    }

    /// Walks for the reaper without stopping at damage; otherwise keys behind the damage would never be reaped.
    pub(crate) fn walk_past_damage(&self, cursor: &Cursor, each: &mut OnItem<'_>) -> Result<Cursor, Error> {
        self.walk_by(Ink::turn_skipping_damage, cursor, each)
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
        let walked = self.tree.each_intact(&mut show, &mut |error| {
            damaged(from_tree(error)).map_err(|error| {
                ended = Err(error);
                pbtree::Error::Stopped
            })
        });
        ended.and(walked.map_err(from_tree))
    }

    fn walk_by(&self, turn: Turn<M, D>, cursor: &Cursor, each: &mut OnItem<'_>) -> Result<Cursor, Error> {
        let from = match cursor {
            Cursor::Start => Bound::Unbounded,
            Cursor::After(key) => Bound::Excluded(&key[..]),
            Cursor::Number(_) | Cursor::End => return Ok(Cursor::End),
        };
        Ok(self.visit_leaf(turn, from, each)?.map_or(Cursor::End, Cursor::After))
    }

    /// Shows the items of the next leaf that has any, expired or not, and returns the last one's key; `None` at the
    /// end. The last leaf is the end even if keys are added behind the shown ones: otherwise a walk would never end
    /// alongside a writer of ascending keys.
    fn visit_leaf(
        &self,
        turn: Turn<M, D>,
        from: Bound<&[u8]>,
        each: &mut OnItem<'_>,
    ) -> Result<Option<Vec<u8>>, Error> {
        let (mut page, mut from) = (Copied::default(), from.map(<[u8]>::to_vec));
        loop {
            turn(self, &mut page, from.as_ref().map(Vec::as_slice), Direction::Forward)?;
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
