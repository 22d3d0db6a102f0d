//! Scans and walks: a leaf of the tree at a time, pinned while it is shown.

use std::ops::{Bound, ControlFlow};

use engine::{Cursor, Damage, Error, OrderedEngine, ScanCursor, Show, Visit};
use index::bplus_tree::{Direction, Page};
use pmem::{Dram, Medium};

use crate::Pmekv;

/// What a scan keeps from one step to the next.
#[derive(Default)]
struct Scan(Page);

impl<M: Medium, D: Dram> OrderedEngine for Pmekv<M, D> {
    fn scan(&self, cursor: &mut ScanCursor, each: &mut Visit<'_>) -> Result<bool, Error> {
        let (from, direction, Scan(page)) = cursor.parts::<Scan>();
        let direction = match direction {
            engine::Direction::Forward => Direction::Forward,
            engine::Direction::Backward => Direction::Backward,
        };
        let _pin = epoch::pin();
        self.tree.read_page(&self.records(), from, direction, page)?;
        self.met_many()?;
        let mut last = None;
        for &position in page.positions() {
            let item = self.records().read(position)?;
            last = Some(item.key);
            if self.is_past(item.expiry) {
                continue;
            }
            self.may_show(position, &item)?;
            if each(item.key, item.value) == ControlFlow::Break(()) {
                cursor.pass(item.key);
                return Ok(false);
            }
        }
        if cursor.follow::<Scan>(|Scan(page)| page.next()) {
            return Ok(true);
        }
        last.into_iter().for_each(|key| cursor.pass(key));
        Ok(false)
    }

    fn check_order(&self, damaged: &mut dyn FnMut(Damage)) -> Result<u64, Error> {
        self.check_tree(damaged);
        Ok(self.tree.len())
    }
}

impl<M: Medium, D: Dram> Pmekv<M, D> {
    /// As [`engine::Engine::walk`], with what has expired.
    pub(crate) fn walk_all(&self, cursor: &Cursor, each: &mut Show<'_>) -> Result<Cursor, Error> {
        let mut from = match cursor {
            Cursor::Start => Bound::Unbounded,
            Cursor::After(key) => Bound::Excluded(key.clone()),
            Cursor::Number(_) | Cursor::End => return Ok(Cursor::End),
        };
        let mut page = Page::default();
        loop {
            let _pin = epoch::pin();
            let start = from.as_ref().map(Vec::as_slice);
            self.tree.read_page(&self.records(), start, Direction::Forward, &mut page)?;
            self.met_many()?;
            let mut last = None;
            for &position in page.positions() {
                let item = self.records().read(position)?;
                self.may_show(position, &item)?;
                each(item.key, item.value, item.expiry);
                last = Some(item.key);
            }
            match (last, page.next()) {
                (_, None) => return Ok(Cursor::End),
                (Some(last), _) => return Ok(Cursor::After(last.to_vec())),
                (None, Some(next)) => from = next.map(<[u8]>::to_vec),
            }
        }
    }
}
