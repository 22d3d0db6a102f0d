//! Stores that omit a step while space is reused: each of these broken variants must be caught.

use pmem::MediumError;

use super::*;
use crate::canary;

const PINS: Broken = Broken { step: None, pins: true };

/// A FRESH word was left behind. Readers settle it, while a writer removes the entry and puts the same key into the
/// same slot, with an item at the same offset: the same word again, but not durable yet.
fn space_of_a_removed_item_is_used_again(broken: Broken, reader: fn(&Scene)) {
    let writer = |scene: &Scene| {
        let freed = scene.unlink(ONE).expect("it was put").position;
        scene.put_in_space(freed, ONE, 2);
    };
    model(broken, |scene| scene.put_half(ONE, 1), &[reader, writer], |_| {});
}

/// Settles like a reader that has loaded the word and does not read the item.
fn settle_alone(scene: &Scene) {
    let seen = |_| Ok::<_, MediumError>(Some(()));
    scene.pinned(|| scene.rig.index.find(&scene.rig.medium, ONE.signature, seen)).unwrap();
}

fn get_pinned(scene: &Scene) {
    assert!([None, Some(1), Some(2)].contains(&scene.pinned(|| scene.get(ONE))));
}

#[test]
fn reader_settles_no_later_entry() {
    space_of_a_removed_item_is_used_again(WHOLE, settle_alone);
    space_of_a_removed_item_is_used_again(WHOLE, get_pinned);
}

#[test]
#[should_panic(expected = "settled before it was durable")]
fn unpinned_settling_reader_is_caught() {
    space_of_a_removed_item_is_used_again(PINS, settle_alone);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn unpinned_item_reader_is_caught() {
    space_of_a_removed_item_is_used_again(PINS, get_pinned);
}

/// A writer settles late, after another one has replaced its item and then put that space into the same slot.
fn space_of_a_replaced_item_is_used_again(broken: Broken) {
    let late = |scene: &Scene| scene.pinned(|| scene.put(ONE, 2));
    let other = |scene: &Scene| {
        let freed = scene.put_at(ONE, scene.rig.write_item(ONE, 3)).expect("it was there before");
        scene.put_in_space(freed, ONE, 4);
    };
    let after = |scene: &Scene| assert!([Some(2), Some(3), Some(4)].contains(&scene.get(ONE)));
    model(broken, |scene| scene.put(ONE, 1), &[late, other], after);
}

#[test]
fn late_writer_settles_no_later_entry() {
    space_of_a_replaced_item_is_used_again(WHOLE);
}

#[test]
#[should_panic(expected = "settled before it was durable")]
fn late_writer_without_pin_is_caught() {
    space_of_a_replaced_item_is_used_again(PINS);
}

#[test]
#[should_panic(expected = "Some(2) was read, Some(1) is durable")]
fn read_that_is_not_settled_is_caught() {
    let reader = |scene: &Scene| read_in_order(scene, ONE, &[Some(1), Some(2)]);
    let broken = Broken { step: Some(canary::UNSETTLED_READ), pins: false };
    model(broken, |scene| scene.put(ONE, 1), &[|scene| scene.put(ONE, 2), reader], |_| {});
}

#[test]
#[should_panic(expected = "a stale value")]
fn early_split_routing_of_writers_is_caught() {
    let before = |scene: &Scene| {
        scene.put(TWO, 7);
        scene.put(ONE, 1);
    };
    let writer = |scene: &Scene| {
        scene.put(ONE, 2);
        assert_eq!(scene.get(ONE), Some(2), "a stale value");
    };
    let broken = Broken { step: Some(canary::WRITERS_LED_FIRST), pins: false };
    model(broken, before, &[writer, Scene::split], |_| {});
}

#[test]
#[should_panic(expected = "None was read, Some(1) is durable")]
fn plain_zero_delete_is_caught() {
    let remover = |scene: &Scene| assert!(scene.unlink(ONE).is_some());
    let reader = |scene: &Scene| read_in_order(scene, ONE, &[Some(1), None]);
    let broken = Broken { step: Some(canary::PLAIN_ZERO_DELETE), pins: false };
    model(broken, |scene| scene.put(ONE, 1), &[remover, reader], |_| {});
}

/// Two writers of one key, on memory, where a plain store clears the mark of a word.
fn marks_are_taken_on_memory(step: Canary) {
    let after = |scene: &Scene| assert_eq!(scene.get(ONE), scene.durable(ONE), "a word that was replaced came back");
    let writers: [fn(&Scene); 2] = [|scene| scene.put(ONE, 2), |scene| scene.put(ONE, 3)];
    model_with(Commits::AtOnce, Broken { step: Some(step), pins: false }, |scene| scene.put(ONE, 1), &writers, after);
}

#[test]
#[should_panic(expected = "a word that was replaced came back")]
fn mark_taken_after_unlock_is_caught() {
    marks_are_taken_on_memory(canary::MARK_LOST_UNLOCKED);
}

#[test]
#[should_panic(expected = "settled before it was durable")]
fn mark_taken_before_commit_is_caught() {
    marks_are_taken_on_memory(canary::MARK_LOST_UNCOMMITTED);
}
