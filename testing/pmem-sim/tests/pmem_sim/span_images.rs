//! Hand-written histories on the span model, with the exact set of images that a crash may leave.

use crate::common::{REGION_BYTES, set, store, words};
use pmem::{Bytes, Level, Offset, Persist, Taken};
use pmem_sim::{Model, Sim};

const A: Offset = Offset(0);
const B: Offset = Offset(64);

fn span_sim() -> Sim {
    Sim::new(REGION_BYTES, Model::Span)
}

fn sync(sim: &Sim) {
    let ticket = sim.commit(Level::Strongest);
    sim.wait(ticket).expect("a simulated wait succeeds");
}

#[test]
fn unflushed_bytes_never_survive() {
    let sim = span_sim();
    store(&sim, A, 1);
    assert_eq!(sim.compare_exchange(B, 0, 2), Ok(0));
    sync(&sim);
    assert_eq!(words(&sim, &[A, B]), set([[0, 0]]));
}

#[test]
fn flushed_spans_survive_as_log_prefix() {
    let sim = span_sim();
    store(&sim, A, 1);
    store(&sim, B, 2);
    sim.flush(B.span(8));
    sim.order();
    sim.flush(A.span(8));
    assert_eq!(words(&sim, &[A, B]), set([[0, 0], [0, 2], [1, 2]]));
}

#[test]
fn flush_covers_exactly_its_bytes() {
    let sim = span_sim();
    store(&sim, A, u64::from_ne_bytes([1; 8]));
    store(&sim, A.plus(8), 2);
    sim.flush(A.plus(2).span(3));
    store(&sim, A, 9);
    sync(&sim);
    assert_eq!(words(&sim, &[A, A.plus(8)]), set([[u64::from_ne_bytes([0, 0, 1, 1, 1, 0, 0, 0]), 0]]));
}

#[test]
fn commit_promises_nothing_before_its_wait() {
    let sim = span_sim();
    store(&sim, A, 1);
    sim.flush(A.span(8));
    let ticket = sim.commit(Level::Strongest);
    store(&sim, B, 2);
    sim.flush(B.span(8));
    assert_eq!(words(&sim, &[A, B]), set([[0, 0], [1, 0], [1, 2]]));
    sim.wait(ticket).expect("a simulated wait succeeds");
    assert_eq!(words(&sim, &[A, B]), set([[1, 0], [1, 2]]));
    sim.wait(ticket).expect("waiting again is harmless");
    assert_eq!(words(&sim, &[A, B]), set([[1, 0], [1, 2]]));
}

#[test]
fn publish_survives_whole_or_not_at_all() {
    let sim = span_sim();
    assert_eq!(sim.publish(&[(A, 7), (A.plus(32), 9)], 9), Taken::Yes);
    assert_eq!(sim.publish(&[(A.plus(32), 10)], 10), Taken::Yes);
    assert_eq!(words(&sim, &[A, A.plus(32)]), set([[0, 0], [7, 9], [7, 10]]));
}

#[test]
fn stream_is_one_record_across_lines() {
    let sim = span_sim();
    // SAFETY: no other thread uses the region.
    unsafe { sim.stream(Offset(48), &[&[1; 30]]) };
    let end = u64::from_ne_bytes([1, 1, 1, 1, 1, 1, 0, 0]);
    let whole = u64::from_ne_bytes([1; 8]);
    assert_eq!(words(&sim, &[Offset(48), B, Offset(72)]), set([[0, 0, 0], [whole, whole, end]]));
}
