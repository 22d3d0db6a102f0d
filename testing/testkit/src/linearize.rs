//! Checks whether a history is linearizable ([`crate::just_in_time`]).
//!
//! Each key is a register, and linearizability is local: a history is linearizable if and only if every key's history
//! is. One thing is lost: `clear` is one step for all keys, and is judged here as a separate delete of each key.

use std::fmt;

use crate::history::{Call, Event, History, Write};
use crate::just_in_time::{Timed, first_unexplained};

/// Calls on a key that no order explains.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Anomaly {
    /// The key.
    pub key: u64,
    /// The first call, in the order of returns, at which no explanation is left.
    pub event: Event,
    /// The calls on the key that returned before it, the last one first.
    pub before: Vec<Event>,
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Anomaly { key, event, before } = self;
        write!(f, "key {key}: {event:?} contradicts the calls before it: {before:?}")
    }
}

impl std::error::Error for Anomaly {}

impl History {
    /// Judges every key, each of them absent at first. Returns the number of events.
    ///
    /// # Errors
    /// A key whose answers no order of its calls explains.
    ///
    /// # Panics
    /// If more than 64 calls on one key overlap.
    pub fn judge(&self) -> Result<u64, Anomaly> {
        let judged = self.events.iter().map(|(&key, events)| judge_key(key, events));
        judged.sum()
    }
}

fn judge_key(key: u64, events: &[Event]) -> Result<u64, Anomaly> {
    match first_unexplained(None, events) {
        None => Ok(events.len() as u64),
        Some(call) => Err(anomaly(key, events[call], events)),
    }
}

impl Timed for Event {
    type State = Option<u64>;

    fn times(&self) -> (u64, u64) {
        (self.begin, self.end)
    }

    fn is_answered(&self) -> bool {
        !matches!(self.call, Call::Unanswered(_))
    }

    fn effect(&self, value: Option<u64>) -> Option<Option<u64>> {
        effect(self.call, value)
    }
}

fn anomaly(key: u64, event: Event, events: &[Event]) -> Anomaly {
    const SHOWN_COUNT: usize = 12;
    let mut before: Vec<_> = events.iter().copied().filter(|other| other.end < event.end).collect();
    before.sort_by_key(|event| std::cmp::Reverse(event.end));
    before.truncate(SHOWN_COUNT);
    Anomaly { key, event, before }
}

/// Returns the register's value after `call`, or `None` if the call would have answered differently.
fn effect(call: Call, value: Option<u64>) -> Option<Option<u64>> {
    match call {
        Call::Get(found) => (found == value).then_some(value),
        Call::Put(number) => Some(Some(number)),
        Call::Delete(was_there) => (was_there == value.is_some()).then_some(None),
        Call::Swap(expected, new, is_swapped) => {
            (is_swapped == (expected == value)).then_some(if is_swapped { new } else { value })
        }
        Call::Clear | Call::Unanswered(Write::Delete) => Some(None),
        Call::Unanswered(Write::Put(number)) => Some(Some(number)),
        Call::Unanswered(Write::Swap(expected, new)) => Some(if expected == value { new } else { value }),
    }
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::*;

    fn event(begin: u64, end: u64, call: Call) -> Event {
        Event { call, begin, end }
    }

    fn judge(events: &[Event]) -> bool {
        events.iter().map(|&event| (0, event)).collect::<History>().judge().is_ok()
    }

    #[test]
    fn overlapping_operations_may_be_reordered() {
        let put = event(0, 10, Call::Put(1));
        for (first, second) in [(None, None), (None, Some(1)), (Some(1), Some(1))] {
            assert!(judge(&[put, event(1, 2, Call::Get(first)), event(3, 4, Call::Get(second))]));
        }
        assert!(!judge(&[put, event(1, 2, Call::Get(Some(1))), event(3, 4, Call::Get(None))]));
    }

    #[test]
    fn each_wrong_answer_is_an_anomaly() {
        let put = event(0, 1, Call::Put(1));
        let update = event(2, 3, Call::Put(2));
        assert!(!judge(&[put, update, event(4, 5, Call::Get(Some(1)))]), "a stale value");
        assert!(!judge(&[put, event(4, 5, Call::Get(None))]), "a lost put");
        assert!(!judge(&[put, event(4, 5, Call::Get(Some(3)))]), "a value of no put");
        assert!(!judge(&[event(4, 5, Call::Get(Some(1))), event(6, 7, Call::Put(1))]), "a value of the future");
        assert!(!judge(&[put, event(2, 3, Call::Delete(true)), event(4, 5, Call::Get(Some(1)))]), "a ghost");
        assert!(!judge(&[put, event(2, 3, Call::Delete(false))]), "a delete that overlooked the key");
        assert!(!judge(&[put, event(2, 6, Call::Delete(true)), event(3, 5, Call::Delete(true))]), "deleted twice");
        let swap = |is_swapped| event(2, 3, Call::Swap(Some(1), Some(2), is_swapped));
        assert!(!judge(&[put, swap(false)]), "a swap that did not see the current value");
        assert!(!judge(&[put, swap(true), event(4, 5, Call::Get(Some(1)))]), "a swap that is lost");
        let others = [event(2, 6, Call::Swap(Some(1), Some(2), true)), event(3, 5, Call::Swap(Some(1), Some(3), true))];
        assert!(!judge(&[put, others[0], others[1]]), "two swaps of one value");
        assert!(!judge(&[put, event(2, 3, Call::Clear), event(4, 5, Call::Get(Some(1)))]), "not cleared");
    }

    #[test]
    fn unanswered_operation_may_have_happened() {
        let (put, lost) = (event(0, 1, Call::Put(1)), event(2, 5, Call::Unanswered(Write::Put(2))));
        let get = |begin, found| event(begin, begin + 1, Call::Get(found));
        assert!(judge(&[put, lost, get(6, Some(1)), get(8, Some(1))]));
        assert!(judge(&[put, lost, get(6, Some(2)), get(8, Some(2))]));
        assert!(judge(&[put, lost, get(3, Some(1)), get(6, Some(2))]));
        assert!(!judge(&[put, lost, get(3, Some(2)), get(6, Some(1))]), "it was seen, and is lost");
        assert!(!judge(&[put, lost, get(6, Some(1)), get(8, Some(2))]), "it happened after its end");
        assert!(!judge(&[put, lost, get(6, None)]), "it took something else away");
        let both = [event(2, 6, Call::Unanswered(Write::Put(2))), event(3, 5, Call::Unanswered(Write::Delete))];
        for found in [None, Some(1), Some(2)] {
            assert!(judge(&[put, both[0], both[1], get(7, found)]), "{found:?}");
        }
    }

    /// The definition of linearizability itself: there is an order of the calls that keeps the order of those that do
    /// not overlap and explains every answer.
    fn some_order_explains(events: &[Event], value: Option<u64>) -> bool {
        let first_end = events.iter().map(|event| event.end).min();
        events.is_empty()
            || (0..events.len()).filter(|&i| Some(events[i].begin) < first_end).any(|i| {
                let rest = [&events[..i], &events[i + 1..]].concat();
                effect(events[i].call, value).is_some_and(|value| some_order_explains(&rest, value))
                    || matches!(events[i].call, Call::Unanswered(_)) && some_order_explains(&rest, value)
            })
    }

    fn random_events(rng: &mut Rng) -> Vec<Event> {
        let count = rng.usize(1..7);
        let mut stamps: Vec<u64> = (0..2 * count as u64).collect();
        rng.shuffle(&mut stamps);
        let call = |rng: &mut Rng| match rng.u8(..8) {
            5 => Call::Unanswered(Write::Put(rng.u64(..2))),
            6 => Call::Unanswered(Write::Swap(rng.bool().then(|| rng.u64(..2)), rng.bool().then(|| rng.u64(..2)))),
            4 => Call::Swap(rng.bool().then(|| rng.u64(..2)), rng.bool().then(|| rng.u64(..2)), rng.bool()),
            0 => Call::Put(rng.u64(..2)),
            1 => Call::Delete(rng.bool()),
            _ => Call::Get(rng.bool().then(|| rng.u64(..2))),
        };
        stamps.chunks(2).map(|at| event(at[0].min(at[1]), at[0].max(at[1]), call(rng))).collect()
    }

    #[test]
    fn it_judges_as_the_definition_does() {
        let mut rng = Rng::with_seed(1);
        let mut legal_count = 0;
        for _ in 0..50_000 {
            let events = random_events(&mut rng);
            let is_legal = some_order_explains(&events, None);
            assert_eq!(judge(&events), is_legal, "{events:?}");
            legal_count += u32::from(is_legal);
        }
        assert!((5_000..45_000).contains(&legal_count), "{legal_count} of 50,000 were legal");
    }
}
