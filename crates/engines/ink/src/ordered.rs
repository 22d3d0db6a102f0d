//! Ordered scans.

use std::ops::ControlFlow;

use engine::{Damage, Error, OrderedEngine, ScanCursor, Verify, Visit};
use pbtree::{Direction, Ended};
use pmem::{Dram, Medium};

use crate::Ink;
use crate::items::Items;
use crate::pages::Copied;

/// The most pages shown in one call: dozens of items for short scans, hundreds for long ones.
const PAGES_MAX: usize = 8;

impl<M: Medium, D: Dram> OrderedEngine for Ink<M, D> {
    fn scan(&self, cursor: &mut ScanCursor, each: &mut Visit<'_>) -> Result<bool, Error> {
        let direction = match cursor.direction() {
            engine::Direction::Forward => Direction::Forward,
            engine::Direction::Backward => Direction::Backward,
        };
        let mut scan = self.tree().scanning(direction);
        for _ in 0..PAGES_MAX {
            let (from, _, page) = cursor.parts::<Copied>();
            let ended = page.follow(&mut scan, from)?;
            if let Some(i) = visit_page(self.items(), page, each)? {
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
        Ok(self.items().check(damaged)?.key_count)
    }
}

/// Shows a page's items. Returns the number of the item after which `each` stopped.
fn visit_page<M: Medium, D: Dram>(
    items: &Items<M, D>,
    page: &Copied,
    each: &mut Visit<'_>,
) -> Result<Option<usize>, Error> {
    for (i, item) in page.items().enumerate() {
        if items.is_past(item.expiry()) {
            continue;
        }
        if items.verify() > Verify::Nothing {
            item.check_intact()?;
        }
        if each(item.key, item.value) == ControlFlow::Break(()) {
            return Ok(Some(i));
        }
    }
    Ok(None)
}
