//! How many keys there are. Nothing counts keys as they come and go: the tree is walked, so a caller that asks for figures again
//! and again gets those of the last walk, unless that was quick or a hundred times as long as it took has gone by since.

use std::time::{Duration, Instant};

use engine::Error;
use parking_lot::Mutex;
use pbtree::Figures;
use pmem::{Dram, Medium};

use crate::Ink;
use crate::error::from_tree;

/// Figures cost one part of this many of a thread's time, at most.
const SHARE: u32 = 100;
/// A walk as quick as this is made anew each time.
const QUICK: Duration = Duration::from_micros(200);

/// What the last walk found.
#[derive(Default)]
pub(crate) struct Counted(Mutex<Option<Walk>>);

struct Walk {
    figures: Figures,
    ended: Instant,
    took: Duration,
}

impl<M: Medium, D: Dram> Ink<M, D> {
    /// Walks the tree.
    pub(crate) fn count(&self) -> Result<Figures, Error> {
        let start = Instant::now();
        let figures = self.tree.figures().map_err(from_tree)?;
        let ended = Instant::now();
        *self.counted.0.lock() = Some(Walk { figures, ended, took: ended - start });
        Ok(figures)
    }

    /// The last walk's figures, or a new one's.
    pub(crate) fn figures(&self) -> Figures {
        let is_new = |walk: &&Walk| walk.took > QUICK && walk.ended.elapsed() < walk.took * SHARE;
        let known = self.counted.0.lock().as_ref().filter(is_new).map(|walk| walk.figures);
        known.unwrap_or_else(|| self.count().unwrap_or_default())
    }
}
