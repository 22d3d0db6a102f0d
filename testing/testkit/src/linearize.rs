//! Checks whether a history is linearizable (Wing and Gong 1993, with the memoisation of Lowe 2017, just in time).
//!
//! Each key is a register, and linearizability is local: a history is linearizable if and only if every key's history
//! is. One thing is lost: `clear` is one step for all keys, and is judged here as a separate delete of each key.
//!
//! A call that was not answered may take effect until it ends, or never; it cannot take effect afterwards.
//!
//! The judge goes through a key's begins and returns in order and keeps every *configuration* that explains the answers
//! so far: the register's value, and which of the pending calls have taken effect. When a call returns, it must have
//! taken effect in every configuration that is kept. If none is left, the key has no explanation. The number of
//! configurations is bounded by the number of values times the number of subsets of the calls that overlap.

use std::collections::HashSet;
use std::fmt;

use crate::history::{Call, Event, History, Write};

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

/// A way in which a key's calls may have taken effect so far.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Configuration {
    value: Option<u64>,
    /// Bit i is set if the pending call i has taken effect.
    done: u64,
}

/// The begin or the return of a call.
enum Moment {
    Begin(Event),
    Return(Event),
}

fn judge_key(key: u64, events: &[Event]) -> Result<u64, Anomaly> {
    let mut judge = Judge::default();
    for moment in moments(events) {
        match moment {
            Moment::Begin(event) => judge.begin(event),
            Moment::Return(event) if judge.explains_return(event) => {}
            Moment::Return(event) => return Err(anomaly(key, event, events)),
        }
    }
    Ok(events.len() as u64)
}

fn moments(events: &[Event]) -> impl Iterator<Item = Moment> {
    let begins = events.iter().map(|&event| (event.begin, Moment::Begin(event)));
    let returns = events.iter().map(|&event| (event.end, Moment::Return(event)));
    let mut moments: Vec<_> = begins.chain(returns).collect();
    moments.sort_by_key(|&(at, _)| at);
    moments.into_iter().map(|(_, moment)| moment)
}

fn anomaly(key: u64, event: Event, events: &[Event]) -> Anomaly {
    const SHOWN_COUNT: usize = 12;
    let mut before: Vec<_> = events.iter().copied().filter(|other| other.end < event.end).collect();
    before.sort_by_key(|event| std::cmp::Reverse(event.end));
    before.truncate(SHOWN_COUNT);
    Anomaly { key, event, before }
}

struct Judge {
    /// Calls that have begun and not returned; their indices are the bits of [`Configuration::done`].
    pending: Vec<Option<Event>>,
    configurations: HashSet<Configuration>,
}

impl Default for Judge {
    fn default() -> Judge {
        Judge { pending: Vec::new(), configurations: HashSet::from([Configuration { value: None, done: 0 }]) }
    }
}

impl Judge {
    fn begin(&mut self, event: Event) {
        match self.pending.iter_mut().find(|place| place.is_none()) {
            Some(place) => *place = Some(event),
            None => self.pending.push(Some(event)),
        }
        assert!(self.pending.len() <= 64, "more than 64 calls at one time");
    }

    /// Lets pending calls take effect until `event` has; returns false if it cannot.
    fn explains_return(&mut self, event: Event) -> bool {
        let place = self.pending.iter().position(|&pending| pending == Some(event)).expect("the call has begun");
        let (mut explained, mut seen) = (HashSet::new(), self.configurations.clone());
        if matches!(event.call, Call::Unanswered(_)) {
            explained.extend(seen.iter().filter(|configuration| configuration.done & 1 << place == 0));
        }
        let mut open: Vec<_> = self.configurations.drain().collect();
        while let Some(configuration) = open.pop() {
            if configuration.done & 1 << place != 0 {
                explained.insert(Configuration { done: configuration.done & !(1 << place), ..configuration });
            } else {
                open.extend(self.steps(configuration).filter(|next| seen.insert(*next)));
            }
        }
        self.pending[place] = None;
        self.configurations = explained;
        !self.configurations.is_empty()
    }

    /// Returns the configurations after one more pending call has taken effect.
    fn steps(&self, from: Configuration) -> impl Iterator<Item = Configuration> {
        let waiting = (0..).zip(&self.pending).filter(move |(place, _)| from.done & 1u64 << place == 0);
        waiting.filter_map(move |(place, pending)| {
            let value = effect(pending.as_ref()?.call, from.value)?;
            Some(Configuration { value, done: from.done | 1 << place })
        })
    }
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
