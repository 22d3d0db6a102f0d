//! The elements of streams by the rules of `docs/format/collections.md`.

use std::collections::{BTreeMap, BTreeSet};

use crate::stored::{Elements, big, little};

const ENTRY: u8 = 0;
const GROUP: u8 = 1;
const CONSUMER_NAME: u8 = 2;
const CONSUMER: u8 = 3;
const PENDING: u8 = 4;
const OWNED: u8 = 5;

/// Returns an element and its value without times, which differ from run to run.
pub(crate) fn shown(element: &[u8], value: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let times = match element.first() {
        Some(&CONSUMER) => 0..8,
        Some(&PENDING) => 8..16,
        _ => 0..0,
    };
    let mut shown = value.to_vec();
    shown.drain(times);
    (format!("{element:02x?}").into_bytes(), shown)
}

/// Returns the parts of a stream that contradict each other.
pub(crate) fn wrong_elements(count: u64, state: [u64; 6], elements: &Elements) -> Vec<String> {
    let mut wrong = Vec::new();
    let of = |kind: u8| elements.iter().filter(move |(element, _)| element[0] == kind);
    let entry_count = of(ENTRY).count() as u64;
    if entry_count != count {
        wrong.push(format!("it has {entry_count} elements that are entries, and its record says {count}"));
    }
    let last = [state[0].to_be_bytes(), state[1].to_be_bytes()].concat();
    if of(ENTRY).any(|(element, _)| element[1..] > last[..]) {
        wrong.push("it has an entry after the last one".to_owned());
    }
    let groups: BTreeSet<u64> = of(GROUP).filter_map(|(_, value)| little(value.get(..8)?)).collect();
    let number = |bytes: &[u8]| big(bytes).unwrap_or_default();
    let (mut by_name, mut consumers) = (BTreeMap::new(), BTreeMap::new());
    for (element, value) in of(CONSUMER_NAME) {
        by_name.insert((number(&element[1..9]), element[9..].to_vec()), little(value).unwrap_or_default());
    }
    for (element, value) in of(CONSUMER) {
        let consumer = (number(&element[1..9]), number(&element[9..17]));
        consumers.insert(consumer, little(&value[8..16]).unwrap_or_default());
        if by_name.remove(&(consumer.0, value[16..].to_vec())) != Some(consumer.1) {
            wrong.push(format!("the name of consumer {consumer:?} leads elsewhere"));
        }
        if !groups.contains(&consumer.0) || consumer.1 > state[5] {
            wrong.push(format!("consumer {consumer:?} is of no group, or has a number to come"));
        }
    }
    wrong.extend(by_name.keys().map(|name| format!("name {name:?} leads to no consumer")));
    let pending = of(PENDING).map(|(element, value)| {
        (number(&element[1..9]), little(&value[..8]).unwrap_or_default(), element[9..].to_vec())
    });
    let owned = of(OWNED).map(|(element, _)| (number(&element[1..9]), number(&element[9..17]), element[17..].to_vec()));
    let (pending, owned): (BTreeSet<_>, BTreeSet<_>) = (pending.collect(), owned.collect());
    if pending != owned {
        wrong.push("it has other pending entries by consumer than by group".to_owned());
    }
    let mut counts: BTreeMap<(u64, u64), u64> = consumers.keys().map(|consumer| (*consumer, 0)).collect();
    owned.iter().for_each(|(group, consumer, _)| *counts.entry((*group, *consumer)).or_default() += 1);
    if counts != consumers {
        wrong.push(format!("consumers count {consumers:?}, and have {counts:?}"));
    }
    wrong
}
