//! The number of keys. It is not maintained by writes: counting walks the tree. So a caller that requests statistics
//! repeatedly gets those of the last walk, unless that walk was quick or ended more than a hundred times its own
//! duration ago.

use std::time::{Duration, Instant};

use engine::Error;
use parking_lot::Mutex;
use pbtree::{Figures, FreeImmediately, Tree};
use pmem::{Dram, Medium};

use crate::error::from_tree;

/// Walks use at most one part in this many of a thread's time.
const SHARE: u32 = 100;
/// A walk as quick as this is repeated each time.
const QUICK: Duration = Duration::from_micros(200);

/// The result of the last walk.
#[derive(Default)]
pub(crate) struct Counted(Mutex<Option<Walk>>);

struct Walk {
    figures: Figures,
    ended: Instant,
    took: Duration,
}

impl Counted {
    /// Walks the tree.
    pub(crate) fn count<M: Medium, D: Dram>(&self, tree: &Tree<M, D, FreeImmediately>) -> Result<Figures, Error> {
        let start = Instant::now();
        let figures = tree.figures().map_err(from_tree)?;
        let ended = Instant::now();
        *self.0.lock() = Some(Walk { figures, ended, took: ended - start });
        Ok(figures)
    }

    /// Returns the counts of the last walk, or of a new one.
    pub(crate) fn figures<M: Medium, D: Dram>(&self, tree: &Tree<M, D, FreeImmediately>) -> Figures {
        let is_new = |walk: &&Walk| walk.took > QUICK && walk.ended.elapsed() < walk.took * SHARE;
        let known = self.0.lock().as_ref().filter(is_new).map(|walk| walk.figures);
        known.unwrap_or_else(|| self.count(tree).unwrap_or_default())
    }
}
