//! A crash image: the state after a power loss or a kill.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use pmem::Offset;

use crate::choice::write_survivors;
use crate::line_model::LineModel;
use crate::model::Part;
use crate::pages::{Line, Pages, line_hash};

/// The bytes of a region after a crash. Cheap: it shares the durable pages with its medium and owns the
/// differences.
#[derive(Clone)]
pub struct Image {
    durable: Arc<Pages>,
    holes: Arc<BTreeSet<u64>>,
    survivors: Vec<(Offset, Line)>,
    choice: Vec<(Part, usize)>,
    len_bytes: u64,
    hash: u64,
    /// After a kill: the contents that are present and may still be lost.
    left: Option<Arc<LineModel>>,
}

impl Image {
    pub(crate) fn new(
        (durable, holes): (&Arc<Pages>, &Arc<BTreeSet<u64>>),
        survivors: Vec<(Offset, Line)>,
        choice: Vec<(Part, usize)>,
        len_bytes: u64,
    ) -> Image {
        let change = |(at, content): &(Offset, Line)| line_hash(*at, &durable.line(*at)) ^ line_hash(*at, content);
        let hash = survivors.iter().map(change).fold(durable.hash() ^ len_bytes, |hash, change| hash ^ change);
        Image { durable: Arc::clone(durable), holes: Arc::clone(holes), survivors, choice, len_bytes, hash, left: None }
    }

    /// Returns the same bytes, of which the lines pending in `left` are not durable.
    pub(crate) fn with_left(self, left: LineModel) -> Image {
        Image { hash: self.hash ^ left.hash().rotate_left(1), left: Some(Arc::new(left)), ..self }
    }

    /// Returns the durable and the pending contents after a kill.
    pub(crate) fn left(&self) -> Option<(Arc<Pages>, LineModel)> {
        let left = self.left.as_ref()?;
        Some((Arc::clone(&self.durable), LineModel::clone(left)))
    }

    /// Returns a hash of the image's bytes and its length: equal for equal images, and practically never for
    /// others.
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// Returns the region's size at the crash.
    #[must_use]
    pub fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// Returns the 64 bytes of the line that holds `at`, as words in memory order.
    #[must_use]
    pub fn line(&self, at: Offset) -> [u64; 8] {
        let line = at.line();
        let survivor = self.survivors.iter().find(|(survivor, _)| *survivor == line);
        survivor.map_or_else(|| self.durable.line(line), |(_, content)| *content)
    }

    /// Returns the pages without space: those that had none at the crash, so that none is used before space is
    /// allocated again.
    pub(crate) fn holes(&self) -> Arc<BTreeSet<u64>> {
        Arc::clone(&self.holes)
    }

    pub(crate) fn pages(&self) -> Pages {
        let mut pages = Pages::clone(&self.durable);
        for (line, content) in &self.survivors {
            pages.set_line(*line, *content);
        }
        pages
    }
}

/// The pending parts that survived, each with its address.
impl fmt::Display for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.left.is_some() {
            return f.write_str("the process was killed");
        }
        let survivors = self.choice.iter().map(|&(part, outcome)| (part, outcome, part.outcome_count));
        write_survivors(f, "parts", survivors, |f, part| write!(f, "{:#x}", part.at.0))
    }
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Image({self})")
    }
}
