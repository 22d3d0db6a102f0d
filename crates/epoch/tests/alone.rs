//! Runs in a separate process, in which no other test starts epochs.

use epoch::Limbo;

/// Many times the retirements of a lane between two epochs.
const COUNT: u64 = 20_000;

/// No thread collects: each retirement frees two things once epochs have passed, and retirements must start those
/// epochs.
#[test]
fn steady_retirer_frees_earlier_items() {
    let (limbo, mut freed_count) = (Limbo::default(), 0);
    (0..COUNT).for_each(|thing| _ = limbo.retire(thing, 1, |_| freed_count += 1));
    assert!(freed_count > COUNT / 2, "{freed_count} of {COUNT} were freed");
    assert_eq!(limbo.len() + freed_count, COUNT);
}
