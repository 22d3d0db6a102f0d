//! A batch of two keys, and readers of both: if a reader has seen the new value of one key, it sees the new value
//! of the other, and so does a reader after a power loss.

use heap::{BatchState, BatchWord};

use super::*;
use crate::canary;

/// Returns the complete index, or one that is broken in one step.
fn broken(step: Option<Canary>) -> Broken {
    Broken { step, pins: false }
}

impl Scene {
    fn write_batch(&self, changes: &[(Key, Option<u64>)]) {
        self.rig.write_batch(changes);
    }

    /// Returns the value of the key after a power loss and an open. The key had the value `old` before the batch.
    fn durable_in_batch(&self, key: Key, old: Option<u64>) -> Option<u64> {
        let (entries, word) = self.rig.medium.durable_words();
        let (_, position) = *entries.iter().find(|(signature, _)| *signature == key.signature)?;
        if position.is_in_batch()
            && BatchWord::from_word(word).expect("marked without a batch").state == BatchState::Prepared
        {
            return old;
        }
        position.is_live().then(|| item(&self.rig.medium.sim, position).1)
    }
}

/// The values of ONE and TWO before and after the batch.
const REPLACED: [[Option<u64>; 2]; 2] = [[Some(1), Some(1)], [Some(2), Some(2)]];
const MOVED: [[Option<u64>; 2]; 2] = [[Some(1), None], [None, Some(2)]];

fn write(scene: &Scene, [_, [one, two]]: [[Option<u64>; 2]; 2]) {
    scene.write_batch(&[(ONE, one), (TWO, two)]);
}

/// Reads one key, then the other, which must not be older; nor may either be older after a power loss.
fn read(scene: &Scene, keys: [Key; 2], [old, new]: [[Option<u64>; 2]; 2]) {
    let mut was_new = false;
    for (i, key) in keys.into_iter().enumerate() {
        let of = if key == ONE { 0 } else { 1 };
        let seen = scene.get(key);
        assert!(seen == new[of] || seen == old[of] && !was_new, "half of a batch: {seen:?} was read as number {i}");
        was_new |= seen == new[of];
        if was_new {
            let durable = [scene.durable_in_batch(ONE, old[0]), scene.durable_in_batch(TWO, old[1])];
            assert_eq!(durable, new, "a value that was read is not durable");
        }
    }
}

fn replaced(step: Option<Canary>) {
    let before = |scene: &Scene| [ONE, TWO].into_iter().for_each(|key| scene.put(key, 1));
    let threads: [fn(&Scene); 2] = [|scene| write(scene, REPLACED), |scene| read(scene, [ONE, TWO], REPLACED)];
    model(broken(step), before, &threads, |scene| read(scene, [TWO, ONE], [REPLACED[1]; 2]));
}

#[test]
fn two_keys_are_replaced_as_one_step() {
    replaced(None);
}

#[test]
fn batch_replaces_keys_atomically() {
    let before = |scene: &Scene| scene.put(ONE, 1);
    for reader in [(|scene| read(scene, [ONE, TWO], MOVED)) as fn(&Scene), |scene| read(scene, [TWO, ONE], MOVED)] {
        let after = |scene: &Scene| read(scene, [TWO, ONE], [MOVED[1]; 2]);
        model(WHOLE, before, &[|scene| write(scene, MOVED), reader], after);
    }
}

/// The slot of the removed key is reused: a reader sees by the next key's signature that its own key is gone.
fn gone_and_come(step: Option<Canary>) {
    let writer = |scene: &Scene| {
        write(scene, MOVED);
        scene.put(THREE, 3);
    };
    let reader = |scene: &Scene| {
        let [one, two] = [scene.get(ONE), scene.get(TWO)];
        assert!(one.is_some() || two.is_some(), "half of a batch");
    };
    model(broken(step), |scene| scene.put(ONE, 1), &[writer, reader], |scene| assert_eq!(scene.get(THREE), Some(3)));
}

#[test]
fn seen_removal_implies_seen_insert() {
    gone_and_come(None);
}

#[test]
#[should_panic(expected = "half of a batch")]
fn miss_that_is_not_fenced_is_caught() {
    gone_and_come(Some(canary::MISS_NOT_FENCED));
}

/// A later batch uses the same word.
#[test]
fn reader_does_not_confuse_batches() {
    let before = |scene: &Scene| [ONE, TWO].into_iter().for_each(|key| scene.put(key, 1));
    let writer = |scene: &Scene| {
        [2, 3].into_iter().for_each(|value| scene.write_batch(&[(ONE, Some(value)), (TWO, Some(value))]))
    };
    let reader = |scene: &Scene| {
        let [first, second] = [scene.get(ONE), scene.get(TWO)];
        assert!(first.is_some() && first <= second, "{second:?} after {first:?}");
    };
    model(WHOLE, before, &[writer, reader], |scene| assert_eq!((scene.get(ONE), scene.get(TWO)), (Some(3), Some(3))));
}

#[test]
#[should_panic(expected = "half of a batch")]
fn entries_without_marks_are_caught() {
    replaced(Some(canary::HALF_BATCH));
}

#[test]
#[should_panic(expected = "a value that was read is not durable")]
fn undurable_batch_read_is_caught() {
    replaced(Some(canary::UNSETTLED_READ));
}
