//! Many concurrent commands, compared with a map.

use std::collections::BTreeMap;

use device::Config;
use device_client::{Operation, Options, Outcome, StoreIf};
use nvme::Digests;

use crate::support::Bench;

/// Random operations in groups in which each key occurs once, so that their order does not matter. Most have the same
/// kind as the one before, so that the device groups them.
fn groups_match_a_map(bench: &Bench, digests: Digests, group_count: usize) {
    let mut map = BTreeMap::<Vec<u8>, Vec<u8>>::new();
    let mut client = bench.client_with(Options { digests, ..Options::default() });
    let mut random = fastrand::Rng::with_seed(11);
    let mut kind = 0;
    for _ in 0..group_count {
        let mut keys: Vec<u16> = (0..500).collect();
        random.shuffle(&mut keys);
        let operations: Vec<Operation> = keys[..random.usize(1..200)]
            .iter()
            .map(|number| {
                let key = format!("key{number}").into_bytes();
                let value = value(&mut random);
                kind = if random.u8(..4) == 0 { random.u8(..10) } else { kind };
                match kind {
                    0..3 => Operation::Store { key, value, when: StoreIf::Always },
                    3 => Operation::Store { key, value, when: StoreIf::Absent },
                    4 => Operation::Store { key, value, when: StoreIf::There },
                    5 => Operation::Delete { key },
                    6 => Operation::Exist { key },
                    _ => Operation::Retrieve { key },
                }
            })
            .collect();
        let outcomes = client.run(&operations).expect("they are done");
        assert_eq!(outcomes.len(), operations.len());
        for (operation, outcome) in operations.iter().zip(outcomes) {
            assert_eq!(outcome, expected(operation, &mut map), "{operation:?}");
        }
    }
    let mut items = Vec::new();
    loop {
        let from = items.last().map_or(vec![], |(key, _): &(Vec<u8>, Vec<u8>)| [&key[..], &[0]].concat());
        let next = client.range(from).expect("it reads");
        if next.is_empty() {
            break;
        }
        items.extend(next);
    }
    assert!(items.into_iter().eq(map), "the range is the map");
}

/// Mostly short; a few are longer than the shared memory.
fn value(random: &mut fastrand::Rng) -> Vec<u8> {
    let len = match random.u16(..500) {
        0 => random.usize(..(1 << 20) + 3),
        1..50 => random.usize(..20_000),
        _ => random.usize(..300),
    };
    std::iter::repeat_with(|| random.u8(..)).take(len).collect()
}

const PLAIN: Digests = Digests { header: false, data: false };

#[test]
fn command_groups_match_a_map() {
    for by_shm in [false, true] {
        for digests in [PLAIN, Digests { header: true, data: true }] {
            groups_match_a_map(&Bench::new().by_shm(by_shm), digests, 50);
        }
    }
}

/// Completions wait for a disk, and so do retrieved values behind them.
#[test]
fn grouped_commands_on_disk_match_map() {
    for by_shm in [false, true] {
        let dir = tempfile::tempdir_in(".").expect("a directory");
        // Without a journal nothing waits.
        let Ok(store) = hikv::Options::new().durability(hikv::Durability::Power).open(dir.path()) else { return };
        groups_match_a_map(&Bench::of(dir, store, Config::default()).by_shm(by_shm), PLAIN, 25);
    }
}

fn expected(operation: &Operation, map: &mut BTreeMap<Vec<u8>, Vec<u8>>) -> Outcome {
    match operation {
        Operation::Store { key, when: StoreIf::Absent, .. } if map.contains_key(key) => Outcome::Exists,
        Operation::Store { key, when: StoreIf::There, .. } if !map.contains_key(key) => Outcome::Missing,
        Operation::Store { key, value, .. } => {
            map.insert(key.clone(), value.clone());
            Outcome::Done
        }
        Operation::Delete { key } => {
            map.remove(key);
            Outcome::Done
        }
        Operation::Exist { key } => {
            if map.contains_key(key) {
                Outcome::Done
            } else {
                Outcome::Missing
            }
        }
        Operation::Retrieve { key } => map.get(key).map_or(Outcome::Missing, |value| Outcome::Value(value.clone())),
    }
}
