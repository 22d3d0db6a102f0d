//! Scenes with the correct store: no thread may see a wrong state.

use pmem::MediumError;

use super::*;
use crate::partitioned_hash::Cursor;

/// Runs a scene in which nothing is broken.
fn whole(before: fn(&Scene), threads: &[fn(&Scene)], after: fn(&Scene)) {
    model(WHOLE, before, threads, after);
}

/// Runs a scene in which nothing is broken, on memory.
fn whole_on_memory(before: fn(&Scene), threads: &[fn(&Scene)], after: fn(&Scene)) {
    model_with(Commits::AtOnce, WHOLE, before, threads, after);
}

#[test]
fn settling_reader_on_memory_sees_write_order() {
    let writer = |scene: &Scene| {
        scene.put(ONE, 2);
        assert_eq!(scene.remove(ONE), Some(2));
    };
    let reader = |scene: &Scene| read_in_order(scene, ONE, &[Some(1), Some(2), None]);
    whole_on_memory(|scene| scene.put(ONE, 1), &[writer, reader], |scene| assert_eq!(scene.get(ONE), None));
}

#[test]
fn reused_slot_on_memory_hides_other_key() {
    let reader = |scene: &Scene| read_in_order(scene, TWO, &[None, Some(2)]);
    let after = |scene: &Scene| assert_eq!((scene.get(ONE), scene.get(TWO)), (None, Some(2)));
    whole_on_memory(|scene| scene.put(ONE, 1), &[change_hands, reader], after);
}

#[test]
fn two_writers_and_reader_agree_on_memory() {
    let reader = |scene: &Scene| assert!([Some(1), Some(2), None].contains(&scene.get(ONE)));
    let after = |scene: &Scene| assert_eq!(scene.durable(ONE), scene.get(ONE));
    whole_on_memory(
        |scene| scene.put(ONE, 1),
        &[|scene| scene.put(ONE, 2), |scene| assert!(scene.remove(ONE).is_some()), reader],
        after,
    );
}

#[test]
fn reader_sees_write_order() {
    let writer = |scene: &Scene| {
        scene.put(ONE, 1);
        scene.put(ONE, 2);
    };
    let reader = |scene: &Scene| read_in_order(scene, ONE, &[None, Some(1), Some(2)]);
    whole(|_| {}, &[writer, reader], |scene| assert_eq!(scene.get(ONE), Some(2)));
}

#[test]
fn reused_slot_hides_other_key() {
    let writer = |scene: &Scene| {
        assert_eq!(scene.remove(ONE), Some(1));
        scene.put(TWO, 2);
    };
    let readers: [fn(&Scene); 2] =
        [|scene| read_in_order(scene, ONE, &[Some(1), None]), |scene| read_in_order(scene, TWO, &[None, Some(2)])];
    let after = |scene: &Scene| assert_eq!((scene.get(ONE), scene.get(TWO)), (None, Some(2)));
    for reader in readers {
        whole(|scene| scene.put(ONE, 1), &[writer, reader], after);
    }
}

#[test]
fn late_remover_spares_next_entry() {
    let remover = |scene: &Scene| assert_eq!(scene.remove(ONE), Some(1));
    let after = |scene: &Scene| assert_eq!((scene.get(ONE), scene.get(TWO)), (None, Some(2)));
    let reader = |scene: &Scene| assert!([Some(1), None].contains(&scene.get(ONE)));
    whole(|scene| scene.put(ONE, 1), &[remover, |scene| scene.put(TWO, 2), reader], after);
}

#[test]
fn equal_signatures_are_distinguished_in_reused_slots() {
    let remover = |scene: &Scene| assert_eq!(scene.remove(ONE), Some(1));
    let reader = |scene: &Scene| assert!([None, Some(3)].contains(&scene.get(ALIKE)));
    let after = |scene: &Scene| assert_eq!((scene.get(ONE), scene.get(ALIKE)), (None, Some(3)));
    whole(|scene| scene.put(ONE, 1), &[remover, |scene| scene.put(ALIKE, 3), reader], after);
}

#[test]
fn two_writers_and_reader_agree() {
    let reader = |scene: &Scene| assert!([Some(1), Some(2), Some(3)].contains(&scene.get(ONE)));
    let after = |scene: &Scene| {
        let last = scene.get(ONE);
        assert!(last == Some(2) || last == Some(3));
        assert_eq!(scene.durable(ONE), last);
    };
    whole(|scene| scene.put(ONE, 1), &[|scene| scene.put(ONE, 2), |scene| scene.put(ONE, 3), reader], after);
}

#[test]
fn key_is_removed_by_one_of_two() {
    let remover = |scene: &Scene| assert!([None, Some(1), Some(2)].contains(&scene.remove(ONE)));
    let putter = |scene: &Scene| scene.put(ONE, 2);
    let after = |scene: &Scene| {
        let last = scene.get(ONE);
        assert!([None, Some(2)].contains(&last));
        assert_eq!(scene.durable(ONE), last);
    };
    whole(|scene| scene.put(ONE, 1), &[remover, putter, remover], after);
}

#[test]
fn entry_moves_under_reader_and_writer() {
    let before = |scene: &Scene| {
        scene.put(TWO, 7);
        scene.put(ONE, 1);
    };
    let reader = |scene: &Scene| {
        let [first, second] = [scene.get(ONE), scene.get(ONE)];
        assert!(first.is_some() && first <= second, "{second:?} after {first:?}");
    };
    let after = |scene: &Scene| assert_eq!((scene.get(ONE), scene.get(TWO)), (Some(2), Some(7)));
    whole(before, &[|scene| scene.put(ONE, 2), Scene::split, reader], after);
}

#[test]
fn writes_around_split_stay_readable() {
    let before = |scene: &Scene| {
        scene.put(TWO, 7);
        scene.put(ONE, 1);
    };
    let writer = |scene: &Scene| {
        scene.put(ONE, 2);
        assert_eq!(scene.get(ONE), Some(2), "a stale value");
    };
    whole(before, &[writer, Scene::split], |_| {});
}

#[test]
fn absent_and_then_another_key() {
    let writer = |scene: &Scene| {
        scene.put(TWO, 2);
        assert_eq!(scene.remove(ONE), Some(1));
        scene.put(THREE, 3);
    };
    let reader = |scene: &Scene| {
        if scene.get(ONE).is_none() {
            assert_eq!(scene.get(TWO), Some(2), "time runs backwards");
        }
    };
    whole(|scene| scene.put(ONE, 1), &[writer, reader], |_| {});
}

#[test]
fn removal_is_not_undone_by_split() {
    let before = |scene: &Scene| {
        scene.put(TWO, 7);
        scene.put(BESIDE, 8);
        scene.put(ONE, 1);
    };
    let remover = |scene: &Scene| assert_eq!(scene.remove(ONE), Some(1));
    let reader = |scene: &Scene| {
        let [first, second] = [scene.get(ONE), scene.get(ONE)];
        assert!(first >= second, "{second:?} after {first:?}");
    };
    let after = |scene: &Scene| assert_eq!((scene.get(ONE), scene.get(TWO)), (None, Some(7)));
    whole(before, &[remover, Scene::split, reader], after);
}

/// Returns the signature of the key in an item.
fn signature_of(scene: &Scene, position: Position) -> u64 {
    let (number, _) = item(&scene.rig.medium, position);
    [ONE, TWO, THREE].into_iter().find(|key| key.number == number).expect("a key of the scene").signature
}

/// Gives the slot of the first key, which is removed, to the second.
fn change_hands(scene: &Scene) {
    assert_eq!(scene.remove(ONE), Some(1));
    scene.put(TWO, 2);
}

#[test]
fn find_takes_no_reused_slot_for_damage() {
    let reader = |scene: &Scene| {
        let found = scene.rig.index.find(&scene.rig.medium, ONE.signature, |position| {
            let is_its_own = signature_of(scene, position) == ONE.signature;
            if is_its_own { Ok(Some(())) } else { Err(MediumError::ReadOnly) }
        });
        found.expect("an entry of another signature was reported as damage");
    };
    whole(|scene| scene.put(ONE, 1), &[change_hands, reader], |_| {});
}

#[test]
fn find_reports_damage_during_slot_reuse() {
    let before = |scene: &Scene| {
        scene.put(ONE, 1);
        // An entry whose signature is not that of its item.
        scene.put_at(THREE, scene.rig.write_item(TWO, 2));
    };
    let reader = |scene: &Scene| {
        let found = scene.rig.index.find(&scene.rig.medium, THREE.signature, |position| {
            let is_its_own = signature_of(scene, position) == THREE.signature;
            if is_its_own { Ok(Some(())) } else { Err(MediumError::ReadOnly) }
        });
        found.expect_err("damage was not told");
    };
    whole(before, &[|scene| assert_eq!(scene.remove(ONE), Some(1)), reader], |_| {});
}

#[test]
fn walk_shows_matching_signature_and_position() {
    let walker = |scene: &Scene| {
        let shown = scene.rig.index.visit(&scene.rig.medium, Cursor::default(), |signature, position| {
            assert_eq!(signature_of(scene, position), signature, "signature and position are of two entries");
            Ok::<_, MediumError>(())
        });
        shown.unwrap();
    };
    whole(|scene| scene.put(ONE, 1), &[change_hands, walker], |_| {});
}
