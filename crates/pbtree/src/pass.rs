//! A pass of merges: through a tree's parents, level by level from the leaves up, one part after the other. This
//! module also decides when another pass is worthwhile. The caller provides the threads, the memory for a key, and
//! the schedule.
//!
//! A pass that merged parents is followed by another one, because their children may have gained neighbours under the
//! same parent.

use crate::merge::Merged;

/// A pass is worthwhile when one key in this many was deleted.
const DELETED_SHARE: u64 = 8;

/// The state of a pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pass {
    level: u8,
    /// The number of pairs in the leaves that it has passed.
    pair_count: u64,
    has_merged_parents: bool,
}

/// The continuation of a pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// In the same part.
    Here,
    /// In the next part: from the key that was passed last.
    Behind,
    /// In the first part of its level.
    First,
    /// In the same part, after a pause.
    Later,
    /// The pass has ended.
    Over,
}

impl Default for Pass {
    fn default() -> Pass {
        Pass { level: 1, pair_count: 0, has_merged_parents: false }
    }
}

impl Pass {
    /// Returns the level to merge at.
    pub fn level(&self) -> u8 {
        self.level
    }

    /// Records the result of an attempt, and returns where the pass continues.
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

    /// Returns the number of keys to delete before another pass is worthwhile, in a tree of nodes of this order.
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
