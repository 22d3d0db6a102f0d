//! In a process of its own, in which nobody else starts epochs.

use epoch::Limbo;

/// Many times what a lane retires between two epochs.
const COUNT: u64 = 20_000;

/// Nobody collects: each retirement frees two, as soon as epochs have gone by, which a thread must start.
#[test]
fn steady_retirer_frees_earlier_items() {
    let (limbo, mut freed_count) = (Limbo::default(), 0);
    (0..COUNT).for_each(|thing| _ = limbo.retire(thing, 1, |_| freed_count += 1));
    assert!(freed_count > COUNT / 2, "{freed_count} of {COUNT} were freed");
    assert_eq!(limbo.len() + freed_count, COUNT);
}
