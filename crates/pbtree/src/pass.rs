//! A pass of merges: through a tree's parents, level by level from the leaves up, a part after the other; and when another pass is worth it. The
//! caller has the threads, the memory for a key, and the time.
//!
//! A pass that merged parents is followed by another one: their children, which had no neighbours before, have some then.

use crate::merge::Merged;

/// A pass is worth it when one key of so many was deleted.
const DELETED_SHARE: u64 = 8;

/// A pass under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pass {
    level: u8,
    /// Pairs that it came by in leaves.
    pair_count: u64,
    has_merged_parents: bool,
}

/// Where a pass goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// In the same part.
    Here,
    /// In the part behind: from the key that was shown last.
    Behind,
    /// In the first part of its level.
    First,
    /// In the same part, after a pause.
    Later,
    /// Nowhere: it is over.
    Over,
}

impl Default for Pass {
    fn default() -> Pass {
        Pass { level: 1, pair_count: 0, has_merged_parents: false }
    }
}

impl Pass {
    /// The level to merge at.
    pub fn level(&self) -> u8 {
        self.level
    }

    /// Enters what a look came to.
    pub fn after(&mut self, merged: Merged) -> Next {
        match merged {
            Merged::Fewer => {
                self.has_merged_parents |= self.level > 1;
                Next::Here
            }
            Merged::Nothing { pair_count, has_more } => {
                self.pair_count += if self.level == 1 { pair_count as u64 } else { 0 };
                if has_more {
                    return Next::Behind;
                }
                self.level += 1;
                Next::First
            }
            Merged::Beyond if self.has_merged_parents => {
                *self = Pass::default();
                Next::First
            }
            Merged::Beyond => Next::Over,
            Merged::NotNow => Next::Later,
        }
    }

    /// How many keys are to be deleted until another pass is worth it, in a tree of nodes of this order.
    pub fn due_count(&self, order: usize) -> u64 {
        (self.pair_count / DELETED_SHARE).max(order as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_pass_is_followed_by_another() {
        let mut pass = Pass::default();
        let nothing = |has_more| Merged::Nothing { pair_count: 800, has_more };
        assert_eq!(pass.after(nothing(true)), Next::Behind);
        assert_eq!(pass.after(Merged::NotNow), Next::Later);
        assert_eq!((pass.after(nothing(false)), pass.level()), (Next::First, 2));
        assert_eq!(pass.after(Merged::Fewer), Next::Here);
        assert_eq!((pass.after(nothing(false)), pass.level()), (Next::First, 3));
        assert_eq!((pass.after(Merged::Beyond), pass), (Next::First, Pass::default()));
        assert_eq!((pass.after(nothing(false)), pass.after(Merged::Beyond)), (Next::First, Next::Over));
        assert_eq!((pass.due_count(63), pass.due_count(127)), (100, 127));
    }
}
