//! Keys about as long as the longest keys in nodes, with common beginnings, or prefixes of each other: in stores whose
//! nodes have keys, and in stores of format 1.1, whose nodes have none.

use std::sync::atomic::Ordering;

use engine::Clock;
use heap::FEATURE_KEYS_IN_NODES;
use heap::layout::SUPERBLOCK_COPIES;
use pmem::{Bytes, Checksum, Persist};
use pmem_sim::Sim;
use testkit::{Contents, Crashed, Failure, Made, Op, Script, Shape, answers_like_a_map, survives};

use crate::crash::settings;
use crate::subject::{OfPmekv, OnSim, shape};

/// The number of a superblock's words that its checksum covers, and the word with its features.
const CHECKED_WORD_COUNT: u64 = 9;
const FEATURES_WORD: u64 = 6;

/// Stores as version 1.1 created them.
pub(crate) struct OfOlder;

impl Made for OfOlder {
    type Engine = OnSim;
    type Medium = Sim;

    fn format(on: Sim, clock: Clock) -> Result<OnSim, Failure> {
        drop(<OfPmekv as Made>::format(on.clone(), clock.clone())?);
        make_older(&on);
        <OfPmekv as Made>::open(on, clock)
    }

    fn open(on: Sim, clock: Clock) -> Result<OnSim, Failure> {
        <OfPmekv as Made>::open(on, clock)
    }

    fn needed_bytes(engine: &OnSim, contents: &Contents) -> Option<u64> {
        <OfPmekv as Made>::needed_bytes(engine, contents)
    }
}

/// Clears the flag for keys in nodes, in a store that has no nodes.
fn make_older(sim: &Sim) {
    for copy in SUPERBLOCK_COPIES {
        let word = |number: u64| copy.plus(8 * number);
        let load = |number: u64| sim.load(word(number), Ordering::Acquire);
        let features = load(FEATURES_WORD) & !(u64::from(FEATURE_KEYS_IN_NODES) << 32);
        sim.store(word(FEATURES_WORD), features, Ordering::Release);
        let bytes: Vec<u8> = (0..CHECKED_WORD_COUNT).flat_map(|number| load(number).to_le_bytes()).collect();
        let checksum = Checksum::default().update(&bytes).value();
        sim.store(word(CHECKED_WORD_COUNT), checksum.into(), Ordering::Release);
        sim.flush(copy.span(128));
        sim.order();
    }
}

/// Returns the empty key, zeros, the longest keys that fit in nodes and keys that are longer by a byte, with eight and
/// sixteen bytes in common.
pub(crate) fn keys() -> Vec<Vec<u8>> {
    let long = |len: usize, last: u8| [&vec![b'k'; len - 1][..], &[last]].concat();
    let short = [&b""[..], &[0], &[0, 0], &[0; 8], &[0; 16], &[0; 17], b"kkkkkkkk", b"kkkkkkkk\0", &[0xFF; 16]];
    let long = [long(15, 0), long(16, 0), long(16, b'k'), long(16, 0xFF), long(17, 0), long(17, b'k'), long(40, b'k')];
    short.into_iter().map(<[u8]>::to_vec).chain(long).collect()
}

pub(crate) fn value(number: usize, version: u8) -> Vec<u8> {
    vec![version * 32 + number as u8; 3 + number * 5]
}

/// All keys are added; some are deleted, changed and added again, over segments, checkpoints and openings.
fn script() -> Script {
    let keys = keys();
    let put = |number: usize, version: u8| Op::Put(keys[number].clone(), value(number, version));
    let delete = |number: usize| Op::Delete(keys[number].clone());
    let first = (0..keys.len()).map(|number| put(number, 1));
    let then = [Op::Reopen, delete(4), put(4, 2), put(11, 2), delete(12), delete(0), Op::Reopen];
    let last = [put(0, 3), put(12, 3), delete(13), put(5, 3), delete(10), put(14, 3), Op::Scan, Op::Reopen];
    Script::after(11, first, then.into_iter().chain(last))
}

#[test]
fn node_length_keys_survive_every_crash() {
    let scripts = [script()];
    let counts = survives::<Crashed<OfPmekv>>(&scripts, &settings());
    assert!(counts.reach(40, 50, 20), "{counts:?}");
}

#[test]
fn older_formats_survive_every_crash() {
    let scripts = [script(), Script::seeded(3, &shape(8))];
    let counts = survives::<Crashed<OfOlder>>(&scripts, &settings());
    assert!(counts.reach(40, 50, 20), "{counts:?}");
}

#[test]
fn they_answer_like_a_map() {
    let shape = || Shape { keys: keys(), batches: true, ..shape(500) };
    answers_like_a_map::<OfPmekv>(shape(), 0..3);
    answers_like_a_map::<OfOlder>(shape(), 0..3);
}
