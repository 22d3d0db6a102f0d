//! The conformance suite for an engine, as far as the engine says that it goes.

use std::ops::Range;

use engine::{Clock, Engine};

use crate::conformance::{Mismatch, conformance};
use crate::crashed::{Crashed, Made};
use crate::shape::Shape;
use crate::subject::{Operations, Subject};

/// Compares all operations of a client, but for those that the engine does not offer, with what a map answers: `op_count` for each seed,
/// on a new store on `medium`. What the engine lacks is returned, so that a test says what was left out.
///
/// # Errors
/// The first difference.
///
/// # Panics
/// If no store can be made.
pub fn engine_conforms<K: Made>(
    medium: impl Fn() -> K::Medium,
    op_count: usize,
    seeds: Range<u64>,
) -> Result<Vec<&'static str>, Mismatch> {
    let everything = Shape {
        multi_puts: true,
        multi_deletes: true,
        swaps: true,
        batches: true,
        conditions: true,
        scans: true,
        clears: true,
        ..Shape::small(op_count)
    };
    let features = K::format(medium(), Clock::default()).expect("there is room").features();
    let (shape, lacks) = everything.offered_by(&features);
    let open = || Box::new(Crashed::<K>::format(medium()).expect("there is room")) as Box<dyn Operations>;
    conformance(open, &shape, seeds).map(|_| lacks)
}
