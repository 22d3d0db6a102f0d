//! What an exploration objects to, as values that one can reproduce.

use std::fmt;

use pmem_sim::{Model, StepKind};

use crate::script::{Key, Op};
use crate::subject::{Direction, Failure, Space};
use crate::visitor::Visitor;

/// What is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Problem {
    /// An image was not recovered.
    DoesNotOpen(Failure),
    /// The image, open for reading alone, is not what it is when it is open for writing.
    ToRead(Box<Problem>),
    /// An operation failed that had no reason to.
    Refused {
        /// Which.
        operation: &'static str,
        /// In the store's words.
        failure: Failure,
    },
    /// An operation gave a wrong answer.
    Answer(String),
    /// The contents are not a legal state.
    Contents(String),
    /// A key is listed twice.
    Duplicate(Vec<u8>),
    /// Listing and looking up a key disagree.
    Lookup(Vec<u8>),
    /// A scan does not show what lookups find, each key once and in order.
    Order {
        /// Which way it went.
        direction: Direction,
        /// What it showed in the first place that is wrong; `None` where something is missing at its end.
        shown: Option<Vec<u8>>,
    },
    /// The store's count is not the number of its keys.
    Length {
        /// What the store says.
        said: u64,
        /// What it lists.
        listed: u64,
    },
    /// The store's own checker found this.
    Damage(Vec<String>),
    /// Space that no key needs is in use, or the reverse.
    Leak(Space),
    /// A reader saw what it may not.
    Reader(String),
    /// A snapshot changed.
    Snapshot(String),
    /// The store panicked.
    Panicked(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::DoesNotOpen(failure) => write!(f, "the image does not open: {failure}"),
            Problem::ToRead(problem) => write!(f, "open for reading: {problem}"),
            Problem::Refused { operation, failure } => write!(f, "{operation} failed: {failure}"),
            Problem::Answer(what) => write!(f, "wrong answer: {what}"),
            Problem::Contents(what) => write!(f, "illegal contents: {what}"),
            Problem::Duplicate(key) => write!(f, "{} is listed twice", Key(key)),
            Problem::Lookup(key) => write!(f, "listing and looking up {} disagree", Key(key)),
            Problem::Order { direction, shown: Some(key) } => write!(f, "out of order ({direction:?}): {}", Key(key)),
            Problem::Order { direction, shown: None } => write!(f, "a scan ended too early ({direction:?})"),
            Problem::Length { said, listed } => write!(f, "the store counts {said} keys and lists {listed}"),
            Problem::Damage(damage) => write!(f, "damage: {}", damage.join("; ")),
            Problem::Leak(Space { live_bytes, needed_bytes }) => {
                write!(f, "{live_bytes} bytes are in use where the contents need {needed_bytes}")
            }
            Problem::Reader(what) => write!(f, "a reader saw: {what}"),
            Problem::Snapshot(what) => write!(f, "a snapshot shows {what}"),
            Problem::Panicked(message) => write!(f, "panicked: {message}"),
        }
    }
}

/// A problem and where it was met. The same script, model and settings meet it again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// The script's seed.
    pub seed: u64,
    /// The medium's model.
    pub model: Model,
    /// The visitor between the steps.
    pub visitor: Visitor,
    /// The operation's place in the script, the setup included.
    pub op_index: usize,
    /// The operation.
    pub op: Op,
    /// How many steps of the operation were made.
    pub op_step: u64,
    /// The last one, or none at rest, after the operation was acknowledged.
    pub kind: Option<StepKind>,
    /// The image, and those of crashes inside its recovery; empty where no crash was needed.
    pub images: Vec<String>,
    /// What is wrong.
    pub problem: Problem,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation { seed, model, visitor, op_index, op, op_step, .. } = self;
        write!(f, "script {seed}, model {model:?}, visitor {visitor:?}, operation {op_index} ({op}), ")?;
        match self.kind {
            Some(kind) => write!(f, "after step {op_step} ({kind:?})")?,
            None => write!(f, "at rest after {op_step} steps")?,
        }
        for image in &self.images {
            write!(f, "; crash, {image}")?;
        }
        write!(f, ": {}", self.problem)
    }
}

/// Why an exploration did not pass.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Objection {
    /// Something is wrong.
    Violation(Box<Violation>),
    /// A script of this seed led to no image at all, so nothing was shown.
    Inconclusive {
        /// The script's seed.
        seed: u64,
    },
}

impl fmt::Display for Objection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Objection::Violation(violation) => violation.fmt(f),
            Objection::Inconclusive { seed } => write!(f, "script {seed} led to no crash image: nothing was shown"),
        }
    }
}

impl std::error::Error for Objection {}
