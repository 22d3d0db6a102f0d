//! Batches that find many segments without space: they start over a few times, and not once per segment.

use fastrand::Rng;

use super::super::layout::Home;
use super::plain::Plain;
use super::rig::{Key, Rig, key};

/// Returns keys whose signatures begin with these bits.
fn keys(rng: &mut Rng, prefix: u64, prefix_bits: u32) -> impl Iterator<Item = Key> {
    let mut number = prefix << 32;
    std::iter::repeat_with(move || {
        number += 1;
        key(prefix << (64 - prefix_bits) | rng.u64(..) >> prefix_bits, number)
    })
}

/// Writes each key with its number as the value, and returns the number of attempts.
fn write(rig: &Rig<Plain>, keys: &[Key]) -> usize {
    let attempt_count = rig.attempts_of_batch(&keys.iter().map(|&key| (key, Some(key.number))).collect::<Vec<_>>());
    assert!(keys.iter().all(|&key| rig.get(key) == Some(key.number)));
    attempt_count
}

/// A nearly empty segment is split for the entries that are about to come; it does not count as a segment of equal
/// signatures.
#[test]
fn nearly_empty_segments_are_split_ahead() {
    const PARTITION_COUNT: u32 = 4;
    let (rig, mut rng) = (Rig::format(Plain::new(), PARTITION_COUNT), Rng::with_seed(1));
    let mut keys = keys(&mut rng, 1, 1);
    keys.by_ref().take(2).for_each(|key| _ = rig.put(key, key.number));
    let many: Vec<_> = keys.take(10_000).collect();
    let attempt_count = write(&rig, &many);
    // Without splitting ahead, each attempt would double the segments, of which there are to be sixteen.
    assert_eq!(attempt_count, 2, "once without room, and once with");
    let stats = rig.index.split_stats();
    assert!(stats.chained_count == 0 && stats.split_count > 10, "{} chained", stats.chained_count);
}

/// All full segments are split before the batch starts again.
#[test]
fn full_segments_are_split_together() {
    const PARTITION_BITS: u32 = 5;
    let (rig, mut rng) = (Rig::format(Plain::new(), 1 << PARTITION_BITS), Rng::with_seed(2));
    let without_space: Vec<_> = (0..1 << PARTITION_BITS)
        .map(|partition| {
            let _pin = epoch::pin();
            let mut keys = keys(&mut rng, partition, PARTITION_BITS).filter(|key| Home::of(key.signature).pair == 0);
            loop {
                let key = keys.next().expect("there are many");
                match rig.publish(key, rig.write_item(key, key.number)) {
                    Ok((published, found)) => _ = rig.finish(published, found),
                    Err(_) => return key,
                }
            }
        })
        .collect();
    assert_eq!(rig.index.split_stats().split_count, 0);
    let attempt_count = write(&rig, &without_space);
    assert!(attempt_count <= 3, "begun {attempt_count} times");
}
