//! The named trees of the store, for INFO and the metrics.

use crate::shared::Shared;

/// Trees that INFO and the metrics show: programs may create thousands.
const SHOWN_COUNT_MAX: usize = 100;

/// Trees whose names begin so are databases of the server, which INFO shows as such.
const RESERVED: &str = "hikv:";

/// A named tree of the store.
#[derive(Clone, Debug)]
pub(crate) struct NamedTree {
    pub(crate) name: String,
    /// `None` if keys were not counted yet.
    pub(crate) items: Option<u64>,
}

/// The named trees of the store.
#[derive(Clone, Debug)]
pub(crate) struct NamedTrees {
    pub(crate) count: usize,
    /// The first ones in the order of their names.
    pub(crate) shown: Vec<NamedTree>,
}

impl NamedTrees {
    /// Returns the trees of the server's store, but not its databases. Visits no keys.
    ///
    /// # Errors
    /// Those of a read.
    pub(crate) fn of(shared: &Shared) -> Result<NamedTrees, hikv::Error> {
        let store = &shared.keyspace.store;
        let mut trees = store.trees()?;
        trees.retain(|tree| !tree.name.starts_with(RESERVED));
        let mut shown = Vec::new();
        for tree in trees.iter().take(SHOWN_COUNT_MAX) {
            // A tree that was dropped since it was listed has no count.
            let found = store.existing_tree(&tree.name)?;
            let items = found.and_then(|tree| tree.stats().ok()).and_then(|stats| stats.items);
            shown.push(NamedTree { name: tree.name.clone(), items });
        }
        Ok(NamedTrees { count: trees.len(), shown })
    }
}
