//! The description of a tree.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use catalog::TreeEntry;

#[cfg(doc)]
use crate::{Store, Tree};

/// A tree with a name, from [`Store::trees`].
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct TreeInfo {
    /// The name.
    pub name: String,
    /// The number. No two trees of a store ever have the same; a cleared tree gets another.
    pub id: u32,
    /// The time of creation, by the clock of the store.
    pub created: SystemTime,
}

/// The figures of a tree, from [`Tree::stats`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct TreeStats {
    /// Keys, including expired keys whose space was not freed yet. `None` if the keys of the store's trees were not
    /// counted yet: the first [`Tree::len`] counts them.
    pub items: Option<u64>,
}

impl From<TreeEntry> for TreeInfo {
    fn from(entry: TreeEntry) -> TreeInfo {
        let created = UNIX_EPOCH + Duration::from_millis(entry.created_ms);
        TreeInfo { name: entry.name, id: entry.id.number(), created }
    }
}
