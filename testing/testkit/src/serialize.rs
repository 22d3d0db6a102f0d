//! Checks whether a history of transactions is strictly serializable: linearizable, if all keys together are one object
//! ([`crate::just_in_time`]).
//!
//! A transaction has up to four operations on few keys. Its writes do not depend on its reads, so the effect of one
//! that was not answered, because the store was killed, is known as well.

use std::fmt;

use crate::just_in_time::{Timed, first_unexplained};

/// The number of keys in a history. Keys are numbers below it.
pub const TX_KEY_COUNT: usize = 5;
/// The most operations of a transaction.
pub const TX_OP_COUNT_MAX: usize = 4;

/// The number of each key's value, 0 if it is absent. No two puts of a history have the same number.
type State = [u64; TX_KEY_COUNT];

/// An operation of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TxOp {
    /// Reads a key.
    Get(u8),
    /// Puts the value of this number.
    Put(u8, u64),
    /// Deletes a key.
    Delete(u8),
    /// Reads all keys from the first to the last.
    Range(u8, u8),
}

impl TxOp {
    /// Returns true for an operation that answers with values.
    #[must_use]
    pub fn reads(self) -> bool {
        matches!(self, TxOp::Get(_) | TxOp::Range(..))
    }

    /// Returns a random operation; `number` is the next one of a value.
    #[must_use]
    pub fn random(rng: &mut fastrand::Rng, has_ranges: bool, number: &mut u64) -> TxOp {
        let mut key = || rng.u8(..TX_KEY_COUNT as u8);
        let (key, other) = (key(), key());
        match rng.u8(..8) {
            0..3 => {
                *number += 1;
                TxOp::Put(key, *number)
            }
            3 => TxOp::Delete(key),
            4 | 5 if has_ranges => TxOp::Range(key.min(other), key.max(other)),
            _ => TxOp::Get(key),
        }
    }
}

/// A transaction with its times.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TxEvent {
    /// The operations.
    pub ops: Vec<TxOp>,
    /// The values of each operation that reads, by key, in the order of the operations; `None` if the transaction was
    /// not answered.
    pub answers: Option<Vec<Vec<(u8, u64)>>>,
    /// The clock before the transaction.
    pub begin: u64,
    /// The clock after the transaction.
    pub end: u64,
}

impl Timed for TxEvent {
    type State = State;

    fn times(&self) -> (u64, u64) {
        (self.begin, self.end)
    }

    fn is_answered(&self) -> bool {
        self.answers.is_some()
    }

    fn effect(&self, mut state: State) -> Option<State> {
        let mut answers = self.answers.as_ref().map(|answers| answers.iter());
        for op in &self.ops {
            match *op {
                TxOp::Put(key, number) => state[usize::from(key)] = number,
                TxOp::Delete(key) => state[usize::from(key)] = 0,
                TxOp::Get(first) | TxOp::Range(first, _) => {
                    let last = if let TxOp::Range(_, last) = *op { last } else { first };
                    let held = (first..=last).map(|key| (key, state[usize::from(key)])).filter(|(_, value)| *value > 0);
                    if answers
                        .as_mut()
                        .is_some_and(|answers| !answers.next().is_some_and(|found| held.eq(found.iter().copied())))
                    {
                        return None;
                    }
                }
            }
        }
        Some(state)
    }
}

/// A transaction that no order explains.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NotSerializable {
    /// The first transaction, in the order of returns, at which no explanation is left.
    pub event: TxEvent,
    /// The transactions that ended before it or overlap with it, the last one first.
    pub before: Vec<TxEvent>,
}

impl fmt::Display for NotSerializable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} contradicts the transactions before it:", self.event)?;
        self.before.iter().try_for_each(|event| write!(f, "\n  {event:?}"))
    }
}

impl std::error::Error for NotSerializable {}

/// Judges a history that begins with no key.
///
/// # Errors
/// The first transaction whose answers no order explains.
///
/// # Panics
/// If more than 64 transactions overlap.
pub fn judge_transactions(events: &[TxEvent]) -> Result<(), NotSerializable> {
    const SHOWN_COUNT: usize = 12;
    let Some(call) = first_unexplained([0; TX_KEY_COUNT], events) else { return Ok(()) };
    let event = events[call].clone();
    let mut before: Vec<_> =
        events.iter().filter(|other| other.begin < event.end && **other != event).cloned().collect();
    before.sort_by_key(|event| std::cmp::Reverse(event.end));
    before.truncate(SHOWN_COUNT);
    Err(NotSerializable { event, before })
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::*;

    fn event(begin: u64, end: u64, ops: &[TxOp], answers: &[&[(u8, u64)]]) -> TxEvent {
        let answers = Some(answers.iter().map(|found| found.to_vec()).collect());
        TxEvent { ops: ops.to_vec(), answers, begin, end }
    }

    #[test]
    fn each_anomaly_is_found() {
        use TxOp::{Delete, Get, Put, Range};
        let is_right = |events: &[TxEvent]| judge_transactions(events).is_ok();
        let start = event(0, 1, &[Put(0, 1), Put(1, 2)], &[]);
        let is_right_after = |events: [TxEvent; 2]| is_right(&[vec![start.clone()], events.into()].concat());
        let lost = [event(2, 6, &[Get(0), Put(0, 3)], &[&[(0, 1)]]), event(3, 5, &[Get(0), Put(0, 4)], &[&[(0, 1)]])];
        assert!(!is_right_after(lost), "a lost update");
        let skew = [event(2, 6, &[Get(0), Put(1, 3)], &[&[(0, 1)]]), event(3, 5, &[Get(1), Put(0, 4)], &[&[(1, 2)]])];
        assert!(!is_right_after(skew), "write skew");
        let torn = [event(2, 6, &[Put(0, 3), Put(1, 4)], &[]), event(3, 5, &[Get(0), Get(1)], &[&[(0, 3)], &[(1, 2)]])];
        assert!(!is_right_after(torn), "read skew");
        let phantom = [event(2, 6, &[Range(2, 4), Put(2, 3)], &[&[]]), event(3, 5, &[Range(2, 4), Put(3, 4)], &[&[]])];
        assert!(!is_right_after(phantom), "a phantom");
        let stale = event(4, 5, &[Get(0)], &[&[(0, 1)]]);
        assert!(!is_right(&[start.clone(), event(2, 3, &[Delete(0)], &[]), stale.clone()]), "not real time");
        assert!(is_right(&[start.clone(), event(2, 6, &[Delete(0)], &[]), stale]));
        let mine = event(2, 3, &[Put(0, 3), Get(0), Delete(1), Range(0, 4)], &[&[(0, 3)], &[(0, 3)]]);
        assert!(is_right(&[start, mine]), "own writes");
    }

    /// The definition itself: some order of the transactions that keeps the order of those that do not overlap.
    fn some_order_explains(events: &[TxEvent], state: State) -> bool {
        let first_end = events.iter().map(|event| event.end).min();
        events.is_empty()
            || (0..events.len()).filter(|&i| Some(events[i].begin) < first_end).any(|i| {
                let rest = [&events[..i], &events[i + 1..]].concat();
                events[i].effect(state).is_some_and(|state| some_order_explains(&rest, state))
                    || !events[i].is_answered() && some_order_explains(&rest, state)
            })
    }

    /// Returns transactions with the answers of some order, of which some are changed.
    fn random_events(rng: &mut Rng) -> Vec<TxEvent> {
        let count = rng.usize(1..6);
        let mut stamps: Vec<u64> = (0..2 * count as u64).collect();
        rng.shuffle(&mut stamps);
        let (mut number, mut state) = (0, [0; TX_KEY_COUNT]);
        let mut events = Vec::new();
        for at in stamps.chunks(2) {
            let ops: Vec<_> = (0..rng.usize(1..=3)).map(|_| TxOp::random(rng, true, &mut number)).collect();
            let mut answers = Vec::new();
            for op in &ops {
                match *op {
                    TxOp::Put(key, number) => state[usize::from(key)] = number,
                    TxOp::Delete(key) => state[usize::from(key)] = 0,
                    TxOp::Get(key) => answers.push(answer(&state, key, key)),
                    TxOp::Range(first, last) => answers.push(answer(&state, first, last)),
                }
            }
            if rng.u8(..6) == 0 {
                answers.iter_mut().take(1).for_each(Vec::clear);
            }
            let answers = (rng.u8(..5) > 0).then_some(answers);
            events.push(TxEvent { ops, answers, begin: at[0].min(at[1]), end: at[0].max(at[1]) });
        }
        events
    }

    fn answer(state: &State, first: u8, last: u8) -> Vec<(u8, u64)> {
        (first..=last).map(|key| (key, state[usize::from(key)])).filter(|(_, value)| *value > 0).collect()
    }

    #[test]
    fn it_judges_as_the_definition_does() {
        let mut rng = Rng::with_seed(1);
        let mut legal_count = 0;
        for _ in 0..20_000 {
            let events = random_events(&mut rng);
            let is_legal = some_order_explains(&events, [0; TX_KEY_COUNT]);
            assert_eq!(judge_transactions(&events).is_ok(), is_legal, "{events:?}");
            legal_count += u32::from(is_legal);
        }
        assert!((2_000..18_000).contains(&legal_count), "{legal_count} of 20,000 were legal");
    }
}
