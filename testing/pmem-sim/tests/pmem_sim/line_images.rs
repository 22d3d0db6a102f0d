//! Hand-written histories on the line model, with the exact set of images that a crash may leave.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use crate::common::{REGION_BYTES, set, store, words};
use pmem::{Bytes, Level, Offset, Persist, Taken};
use pmem_sim::{Model, Sim};

/// The first words of three lines.
const A: Offset = Offset(0);
const B: Offset = Offset(64);
const C: Offset = Offset(128);

fn line_sim() -> Sim {
    Sim::new(REGION_BYTES, Model::Line)
}

#[test]
fn line_stores_survive_in_program_order() {
    let sim = line_sim();
    store(&sim, A, 1);
    store(&sim, A.plus(8), 2);
    assert_eq!(words(&sim, &[A, A.plus(8)]), set([[0, 0], [1, 0], [1, 2]]));
}

#[test]
fn word_shows_each_value_it_had() {
    let sim = line_sim();
    for word in [1, 2, 1] {
        store(&sim, A, word);
    }
    assert_eq!(words(&sim, &[A]), set([[0], [1], [2]]));
}

#[test]
fn two_unfenced_lines_survive_independently() {
    let sim = line_sim();
    store(&sim, A, 1);
    store(&sim, B, 2);
    sim.flush(A.span(8));
    assert_eq!(words(&sim, &[A, B]), set([[0, 0], [1, 0], [0, 2], [1, 2]]), "a flush alone promises nothing");
}

#[test]
fn fence_persists_only_flushed_lines() {
    for fence in [|sim: &Sim| sim.order(), |sim: &Sim| _ = sim.commit(Level::Strongest)] {
        let sim = line_sim();
        store(&sim, A, 1);
        store(&sim, B, 2);
        sim.flush(A.span(8));
        fence(&sim);
        assert_eq!(words(&sim, &[A, B]), set([[1, 0], [1, 2]]));
    }
}

#[test]
fn store_between_flush_and_fence_is_unsure() {
    let sim = line_sim();
    store(&sim, A, 1);
    sim.flush(A.span(8));
    store(&sim, A, 2);
    sim.order();
    assert_eq!(words(&sim, &[A]), set([[1], [2]]));
    sim.flush(A.span(8));
    sim.order();
    assert_eq!(words(&sim, &[A]), set([[2]]));
}

#[test]
fn flush_takes_every_line_it_touches() {
    let sim = line_sim();
    for at in [A, B, C] {
        store(&sim, at, 1);
    }
    sim.flush(A.plus(60).span(8));
    sim.order();
    assert_eq!(words(&sim, &[A, B, C]), set([[1, 1, 0], [1, 1, 1]]));
}

#[test]
fn copy_may_run_upwards_or_downwards() {
    let sim = line_sim();
    let bytes: Vec<u8> = [1u64, 2, 3].iter().flat_map(|word| word.to_ne_bytes()).collect();
    // SAFETY: no other thread uses the region.
    unsafe { sim.write(A, &bytes) };
    let expected = set([[0, 0, 0], [1, 0, 0], [1, 2, 0], [0, 2, 3], [0, 0, 3], [1, 2, 3]]);
    assert_eq!(words(&sim, &[A, A.plus(8), A.plus(16)]), expected);
}

#[test]
fn small_copy_keeps_adjacent_bytes() {
    let sim = line_sim();
    store(&sim, A, u64::from_ne_bytes([9; 8]));
    // SAFETY: no other thread uses the region.
    unsafe { sim.write(A.plus(6), &[1, 2, 3]) };
    let first = u64::from_ne_bytes([9, 9, 9, 9, 9, 9, 1, 2]);
    let second = u64::from_ne_bytes([3, 0, 0, 0, 0, 0, 0, 0]);
    let before = u64::from_ne_bytes([9; 8]);
    let expected = set([[0, 0], [before, 0], [first, 0], [before, second], [first, second]]);
    assert_eq!(words(&sim, &[A, A.plus(8)]), expected);
}

#[test]
fn stream_is_copy_and_its_flush() {
    let sim = line_sim();
    // SAFETY: no other thread uses the region.
    unsafe { sim.stream(Offset(48), &[&[1; 20], &[2; 4]]) };
    let at = [Offset(48), Offset(56), B];
    let full = [[1; 8], [1; 8], [1, 1, 1, 1, 2, 2, 2, 2]].map(u64::from_ne_bytes);
    let first_line = [[0, 0], [full[0], 0], [0, full[1]], [full[0], full[1]]];
    let expected: BTreeSet<_> =
        first_line.iter().flat_map(|&[x, y]| [[x, y, 0], [x, y, full[2]]]).map(Vec::from).collect();
    assert_eq!(words(&sim, &at), expected);
    sim.order();
    assert_eq!(words(&sim, &at), set([full]));
}

#[test]
fn publish_orders_signature_before_position() {
    let sim = line_sim();
    assert_eq!(sim.publish(&[(A, 7), (A.plus(32), 9)], 9), Taken::Yes);
    assert_eq!(words(&sim, &[A, A.plus(32)]), set([[0, 0], [7, 0], [7, 9]]));
    sim.commit(Level::Strongest);
    assert_eq!(words(&sim, &[A, A.plus(32)]), set([[7, 9]]));
}

#[test]
fn exchange_is_a_store_without_fence() {
    let sim = line_sim();
    store(&sim, A, 1);
    sim.flush(A.span(8));
    assert_eq!(sim.compare_exchange(B, 0, 2), Ok(0));
    assert_eq!(sim.compare_exchange(B, 0, 3), Err(2));
    assert_eq!(sim.load(B, Ordering::Acquire), 2);
    assert_eq!(words(&sim, &[A, B]), set([[0, 0], [1, 0], [0, 2], [1, 2]]));
}

#[test]
fn fence_completes_own_threads_flushes() {
    let sim = line_sim();
    store(&sim, A, 1);
    sim.flush(A.span(8));
    let other = sim.clone();
    std::thread::spawn(move || other.order()).join().expect("the other thread ends");
    assert_eq!(words(&sim, &[A]), set([[0], [1]]));
    sim.order();
    assert_eq!(words(&sim, &[A]), set([[1]]));
}

#[test]
fn old_write_back_settles_no_later_store() {
    let sim = line_sim();
    store(&sim, A, 1);
    sim.flush(A.span(8));
    let other = sim.clone();
    let settle = move || {
        other.flush(A.span(8));
        other.order();
    };
    std::thread::spawn(settle).join().expect("the other thread ends");
    store(&sim, A, 2);
    sim.order();
    assert_eq!(words(&sim, &[A]), set([[1], [2]]));
}
