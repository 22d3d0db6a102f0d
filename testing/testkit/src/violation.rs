//! Violations: the objections of an exploration, with everything needed to reproduce them.

use std::fmt;

use pmem_sim::{Model, StepKind};

use crate::script::{Key, Op};
use crate::subject::{Direction, Failure, Space};
use crate::visitor::Visitor;

/// A wrong behaviour of the store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Problem {
    /// Recovery of an image failed.
    DoesNotOpen(Failure),
    /// An image that is opened read-only shows a problem that it does not show when opened for writing.
    ToRead(Box<Problem>),
    /// An operation failed without a reason.
    Refused {
        /// The operation's name.
        operation: &'static str,
        /// The store's error.
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
    /// A scan does not show exactly the keys that lookups find, each of them once and in order.
    Order {
        /// The direction of the scan.
        direction: Direction,
        /// The first key that is wrong; `None` if the scan ended too early.
        shown: Option<Vec<u8>>,
    },
    /// The store's count differs from the number of its keys.
    Length {
        /// The store's count.
        said: u64,
        /// The number of listed keys.
        listed: u64,
    },
    /// The findings of the store's own checker.
    Damage(Vec<String>),
    /// The space in use differs from the space that the keys need.
    Leak(Space),
    /// A reader saw an illegal value.
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
            Problem::ToRead(problem) => write!(f, "opened read-only: {problem}"),
            Problem::Refused { operation, failure } => write!(f, "{operation} failed: {failure}"),
            Problem::Answer(what) => write!(f, "wrong answer: {what}"),
            Problem::Contents(what) => write!(f, "illegal contents: {what}"),
            Problem::Duplicate(key) => write!(f, "{} is listed twice", Key(key)),
            Problem::Lookup(key) => write!(f, "the listing and a lookup of {} disagree", Key(key)),
            Problem::Order { direction, shown: Some(key) } => write!(f, "out of order ({direction:?}): {}", Key(key)),
            Problem::Order { direction, shown: None } => write!(f, "a scan ended too early ({direction:?})"),
            Problem::Length { said, listed } => write!(f, "the store counts {said} keys and lists {listed}"),
            Problem::Damage(damage) => write!(f, "damage: {}", damage.join("; ")),
            Problem::Leak(Space { live_bytes, needed_bytes }) => {
                write!(f, "{live_bytes} bytes are in use where the contents need {needed_bytes}")
            }
            Problem::Reader(what) => write!(f, "wrong for a reader: {what}"),
            Problem::Snapshot(what) => write!(f, "a snapshot shows {what}"),
            Problem::Panicked(message) => write!(f, "panicked: {message}"),
        }
    }
}

/// A problem and its place. The same script, model and settings reproduce it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// The script's seed.
    pub seed: u64,
    /// The medium's model.
    pub model: Model,
    /// The visitor between the steps.
    pub visitor: Visitor,
    /// The operation's index in the script, the setup included.
    pub op_index: usize,
    /// The operation.
    pub op: Op,
    /// The number of steps that the operation had made.
    pub op_step: u64,
    /// The kind of the last step; `None` if the operation was already acknowledged.
    pub kind: Option<StepKind>,
    /// The crash image, followed by those of crashes inside its recovery; empty if no crash was needed.
    pub images: Vec<String>,
    /// The problem.
    pub problem: Problem,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation { seed, model, visitor, op_index, op, op_step, .. } = self;
        write!(f, "script {seed}, model {model:?}, visitor {visitor:?}, operation {op_index} ({op}), ")?;
        match self.kind {
            Some(kind) => write!(f, "after step {op_step} ({kind:?})")?,
            None => write!(f, "after the operation and its {op_step} steps")?,
        }
        for image in &self.images {
            write!(f, "; crash, {image}")?;
        }
        write!(f, ": {}", self.problem)
    }
}

/// The reason why an exploration did not pass.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Objection {
    /// The store is wrong.
    Violation(Box<Violation>),
    /// The script of this seed led to no image, so nothing was tested.
    Inconclusive {
        /// The script's seed.
        seed: u64,
    },
}

impl fmt::Display for Objection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Objection::Violation(violation) => violation.fmt(f),
            Objection::Inconclusive { seed } => write!(f, "script {seed} led to no crash image: nothing was tested"),
        }
    }
}

impl std::error::Error for Objection {}
