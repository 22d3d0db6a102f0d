//! After random changes, the tree equals a map, whatever the keys.

use std::ops::Bound;

use proptest::prelude::*;

use super::super::Direction;
use super::keys::{FAMILY_COUNT, FAMILY_KEY_COUNT, key};
use super::rig::Rig;

/// Keys of a family, at regular intervals from one on.
#[derive(Clone, Debug)]
struct Run {
    family: usize,
    first: usize,
    step: usize,
    count: usize,
}

#[derive(Clone, Debug)]
enum Op {
    Put(Run),
    Remove(Run),
    Scan { family: usize, number: usize, is_inclusive: bool, is_backward: bool },
    Reload(Vec<(usize, usize)>),
    Clear,
    InlineBytes(usize),
}

impl Run {
    fn keys(&self) -> Vec<&'static [u8]> {
        (0..self.count).map(|index| key(self.family, self.first + index * self.step)).collect()
    }
}

fn run() -> impl Strategy<Value = Run> {
    let count = prop_oneof![4 => 1..4usize, 3 => 4..40usize, 1 => 40..800usize];
    let step = prop_oneof![Just(1usize), Just(FAMILY_KEY_COUNT - 1), Just(7), Just(509)];
    (0..FAMILY_COUNT, 0..FAMILY_KEY_COUNT, step, count).prop_map(|(family, first, step, count)| Run {
        family,
        first,
        step,
        count,
    })
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let number = (0..FAMILY_COUNT, 0..FAMILY_KEY_COUNT);
    let op = prop_oneof![
        50 => run().prop_map(Op::Put),
        40 => run().prop_map(Op::Remove),
        30 => (number.clone(), any::<(bool, bool)>()).prop_map(|((family, number), (is_inclusive, is_backward))| {
            Op::Scan { family, number, is_inclusive, is_backward }
        }),
        4 => prop::collection::vec(number, 0..4).prop_map(Op::Reload),
        1 => Just(Op::Clear),
        5 => prop_oneof![Just(0usize), Just(8), Just(40), Just(usize::MAX)].prop_map(Op::InlineBytes),
    ];
    prop::collection::vec(op, 1..80)
}

fn apply(rig: &mut Rig, op: &Op) {
    match op {
        Op::Put(run) => rig.put(&run.keys()),
        Op::Remove(run) => rig.remove(&run.keys()),
        &Op::Scan { family, number, is_inclusive, is_backward } => {
            let key = key(family, number);
            let from = if is_inclusive { Bound::Included(key) } else { Bound::Excluded(key) };
            let direction = if is_backward { Direction::Backward } else { Direction::Forward };
            assert_eq!(rig.scan(from, direction), rig.expected_scan(from, direction));
        }
        Op::Reload(splitters) => {
            let splitters: Vec<&[u8]> = splitters.iter().map(|&(family, number)| key(family, number)).collect();
            rig.reload(&splitters);
        }
        Op::Clear => {
            rig.tree.clear().unwrap();
            rig.map.clear();
        }
        &Op::InlineBytes(inline_bytes) => rig.inline_bytes = inline_bytes,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_tree_is_like_a_map(ops in ops()) {
        let mut rig = Rig::new(40);
        for op in &ops {
            apply(&mut rig, op);
            rig.check();
        }
    }
}
