//! Scans.

use std::ops::{Bound, ControlFlow};

use engine::{Cursor, Damage, Error, OrderedEngine, ScanCursor, Show, Verify, Visit};
use pbtree::Direction;
use pmem::{Dram, Medium};

use crate::Ink;
use crate::error::told;
use crate::pages::Copied;

impl<M: Medium, D: Dram> OrderedEngine for Ink<M, D> {
    fn scan(&self, cursor: &mut ScanCursor, each: &mut Visit<'_>) -> Result<bool, Error> {
        let (from, direction, page) = cursor.parts::<Copied>();
        let direction = match direction {
            engine::Direction::Forward => Direction::Forward,
            engine::Direction::Backward => Direction::Backward,
        };
        self.turn(page, from, direction)?;
        let mut ended_at = None;
        for (i, item) in page.items().enumerate() {
            if self.is_past(item.expiry()) {
                continue;
            }
            if self.verify > Verify::Nothing {
                item.whole()?;
            }
            if each(item.key, item.value) == ControlFlow::Break(()) {
                ended_at = Some(i);
                break;
            }
        }
        match ended_at {
            Some(i) => cursor.follow::<Copied>(|page| page.behind(i)),
            None => return Ok(go_on(cursor, direction)),
        };
        Ok(false)
    }

    fn check_order(&self, damaged: &mut dyn FnMut(Damage)) -> Result<u64, Error> {
        let mut tell = |found: pbtree::Damage| damaged(Damage { offset: found.offset, what: found.what.to_owned() });
        Ok(self.tree.check(&mut tell).map_err(told)?.key_count)
    }
}

/// Sets the cursor to the next page; behind the last item where there is none.
fn go_on(cursor: &mut ScanCursor, direction: Direction) -> bool {
    let has_more = cursor.follow::<Copied>(|page| page.next(direction));
    if !has_more {
        cursor.follow::<Copied>(|page| page.last().map(|item| Bound::Excluded(item.key)));
    }
    has_more
}

/// How a page is taken: [`Ink::turn`], or [`Ink::turn_past_damage`].
type Turn<M, D> = fn(&Ink<M, D>, &mut Copied, Bound<&[u8]>, Direction) -> Result<(), Error>;

impl<M: Medium, D: Dram> Ink<M, D> {
    /// As [`Engine::walk`](engine::Engine::walk), with what has expired.
    pub(crate) fn walk_all(&self, cursor: &Cursor, each: &mut Show<'_>) -> Result<Cursor, Error> {
        self.walk_by(Ink::turn, cursor, each)
    }

    /// The same for the reaper, which damage does not stop: what lies behind it would stay for ever.
    pub(crate) fn walk_past_damage(&self, cursor: &Cursor, each: &mut Show<'_>) -> Result<Cursor, Error> {
        self.walk_by(Ink::turn_past_damage, cursor, each)
    }

    fn walk_by(&self, turn: Turn<M, D>, cursor: &Cursor, each: &mut Show<'_>) -> Result<Cursor, Error> {
        let from = match cursor {
            Cursor::Start => Bound::Unbounded,
            Cursor::After(key) => Bound::Excluded(&key[..]),
            Cursor::Number(_) | Cursor::End => return Ok(Cursor::End),
        };
        Ok(self.show_leaf(turn, from, each)?.map_or(Cursor::End, Cursor::After))
    }

    /// Shows the items of the next leaf that has any, whatever their time, and returns the last one's key; `None` at the end.
    fn show_leaf(&self, turn: Turn<M, D>, from: Bound<&[u8]>, each: &mut Show<'_>) -> Result<Option<Vec<u8>>, Error> {
        let (mut page, mut from) = (Copied::default(), from.map(<[u8]>::to_vec));
        loop {
            turn(self, &mut page, from.as_ref().map(Vec::as_slice), Direction::Forward)?;
            if let Some(last) = page.last() {
                page.items().for_each(|item| each(item.key, item.value, item.expiry()));
                return Ok(Some(last.key.to_vec()));
            }
            match page.next(Direction::Forward) {
                Some(next) => from = next.map(<[u8]>::to_vec),
                None => return Ok(None),
            }
        }
    }
}
