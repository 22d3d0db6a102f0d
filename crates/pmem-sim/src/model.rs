//! What the two crash models have in common.

use pmem::{Offset, Ticket};

use crate::agent::Agent;
use crate::line_model::LineModel;
use crate::pages::{Line, Page, Pages};
use crate::span_model::SpanModel;

/// Which crashes a medium simulates; see the crate's head.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Model {
    /// Memory behind a cache: any subset of unfenced lines survives.
    Line,
    /// A log: flushed bytes alone survive, as a prefix in log order.
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

/// The pending half of a medium: what was stored and is not surely durable.
///
/// It consists of independent *parts*, each with an ordered list of outcomes: outcome 0 is the least that survives, the
/// last one is everything.
pub(crate) trait CrashModel: Send {
    /// One copy gave `line` a new content.
    fn stored(&mut self, line: Offset, content: Line, durable: &Pages);

    /// `agent` flushed `pieces` in one step: where they lie, and their bytes now.
    fn flushed(&mut self, agent: Agent, pieces: &[(Offset, &[u8])]);

    /// The page at `page` was given back: it holds `garbage`.
    fn discarded(&mut self, page: Offset, garbage: &Page, durable: &mut Pages);

    /// `agent` ordered what it flushed before what it flushes after.
    fn ordered(&mut self, agent: Agent, durable: &mut Pages);

    /// `agent` asks that all it flushed become durable.
    fn committed(&mut self, agent: Agent, durable: &mut Pages) -> Ticket;

    /// The commit behind `ticket` is done.
    fn waited(&mut self, ticket: Ticket, durable: &mut Pages);

    /// What is pending for the next process if this one is killed now: the machine keeps what it has. None if nothing is, or if
    /// the model knows of no such thing: what is pending of a log is the process' own.
    fn killed(&self) -> Option<LineModel> {
        None
    }

    /// The independent parts, the newest first.
    fn parts(&self) -> Vec<Part>;

    /// The lines that differ from the durable ones if `kept[i]` is the outcome of part i.
    fn survivors(&self, parts: &[Part], kept: &[usize], durable: &Pages) -> Vec<(Offset, Line)>;
}

/// A piece of the pending state that survives or not whatever the others do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Part {
    /// The line, or the start of the log.
    pub(crate) at: Offset,
    /// How many outcomes it has: at least two.
    pub(crate) outcome_count: usize,
}
