//! The common parts of the two crash models.

use pmem::{Offset, Ticket};

use crate::agent::Agent;
use crate::line_model::LineModel;
use crate::pages::{Line, Page, Pages};
use crate::span_model::SpanModel;

/// The crashes that a medium simulates; see the crate's head.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Model {
    /// Memory behind a cache: any subset of unfenced lines survives.
    Line,
    /// A log: only flushed bytes survive, as a prefix in log order.
    Span,
    /// Files on a disk, which loses, tears and reorders sectors that were not synced.
    Disk,
}

impl Model {
    pub(crate) fn start(self) -> Box<dyn CrashModel> {
        match self {
            Model::Line => Box::new(LineModel::default()),
            Model::Span => Box::new(SpanModel::default()),
            Model::Disk => panic!("a disk has no region of memory: see `SimDisk`"),
        }
    }
}

/// The pending half of a medium: stores that are not surely durable.
///
/// It consists of independent *parts*, each with an ordered list of outcomes: outcome 0 is the least that survives,
/// the last one is everything.
pub(crate) trait CrashModel: Send {
    /// Records that one copy gave `line` a new content.
    fn stored(&mut self, line: Offset, content: Line, durable: &Pages);

    /// Records that `agent` flushed `pieces` in one step: each has an offset and its present bytes.
    fn flushed(&mut self, agent: Agent, pieces: &[(Offset, &[u8])]);

    /// Records that the page at `page` was freed: it holds `garbage`.
    fn discarded(&mut self, page: Offset, garbage: &Page, durable: &mut Pages);

    /// Records that `agent` ordered its earlier flushes before its later ones.
    fn ordered(&mut self, agent: Agent, durable: &mut Pages);

    /// Records that `agent` requested durability of everything that it flushed.
    fn committed(&mut self, agent: Agent, durable: &mut Pages) -> Ticket;

    /// Records that the commit behind `ticket` is done.
    fn waited(&mut self, ticket: Ticket, durable: &mut Pages);

    /// Returns the contents that are pending for the next process if this one is killed now: the machine keeps its
    /// cache. `None` if nothing is pending, or if the model has no such state: the pending part of a log belongs to
    /// the process.
    fn killed(&self) -> Option<LineModel> {
        None
    }

    /// Returns the independent parts, the newest first.
    fn parts(&self) -> Vec<Part>;

    /// Returns the lines that differ from the durable ones if `kept[i]` is the outcome of part i.
    fn survivors(&self, parts: &[Part], kept: &[usize], durable: &Pages) -> Vec<(Offset, Line)>;
}

/// A piece of the pending state that survives independently of the other pieces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Part {
    /// The line, or the start of the log.
    pub(crate) at: Offset,
    /// The number of outcomes: at least two.
    pub(crate) outcome_count: usize,
}
