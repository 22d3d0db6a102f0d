//! Random operations give the same results as on a map, whatever the signatures.

use proptest::prelude::*;

use super::rig::{Contents, Key, Rig, assert_same, key, mixed};

#[derive(Clone, Debug)]
enum Op {
    Put(Key, u64),
    Remove(Key),
    Split(u64),
    Clear,
    Reopen,
}

/// Keys that share everything, a home line, or nothing with one another.
fn keys() -> impl Strategy<Value = Key> {
    const HOME_BITS: u64 = 0xFFFF_FFFF;
    prop_oneof![
        (0..40u64).prop_map(|number| key(0xABCD_0000_1234_5678, number)),
        (0..60u64).prop_map(|number| key(mixed(number) & !HOME_BITS | 0x1234_5678, number)),
        (0..60u64).prop_map(|number| key(mixed(number), number)),
    ]
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        600 => (keys(), any::<u64>()).prop_map(|(key, value)| Op::Put(key, value)),
        350 => keys().prop_map(Op::Remove),
        30 => any::<u64>().prop_map(Op::Split),
        3 => Just(Op::Clear),
        10 => Just(Op::Reopen),
    ];
    prop::collection::vec(op, 1..600)
}

fn apply(mut rig: Rig<pmem_sim::Sim>, op: &Op, model: &mut Contents) -> Rig<pmem_sim::Sim> {
    match *op {
        Op::Put(key, value) => assert_eq!(rig.put(key, value), model.insert(key, value)),
        Op::Remove(key) => assert_eq!(rig.remove(key), model.remove(&key)),
        Op::Split(signature) => rig.split(signature),
        Op::Clear => {
            rig.clear();
            model.clear();
        }
        Op::Reopen => {
            rig = rig.reopened();
            rig.sweep();
        }
    }
    rig
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn operations_answer_like_a_map(ops in ops()) {
        let (mut rig, mut model) = (Rig::new(2), Contents::new());
        for op in &ops {
            rig = apply(rig, op, &mut model);
            if let Op::Put(key, _) | Op::Remove(key) = op {
                assert_eq!(rig.get(*key), model.get(key).copied());
            }
        }
        assert_same(&rig.contents(), &model);
        assert_eq!((rig.index.len(), rig.damage()), (model.len() as u64, vec![]));
    }
}
