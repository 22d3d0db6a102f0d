//! The oracle: decides which states of a store are legal after a crash.
//!
//! - Every acknowledged operation is present.
//! - The operation in flight is present completely or not at all. Once a reader has seen any effect of the operation,
//!   the operation is present.
//! - Nothing else is present.
//! - After a reader has seen one key's new value, no reader sees an old value of any key of that operation.
//! - The puts of one `multi_put`, and the deletes of one `multi_delete`, are separate operations in flight; those of
//!   the same key take effect in their order.
//! - The second writer's key ([`crate::Visitor::WriterAlways`]) holds the value that was acknowledged to the second
//!   writer, whatever happens to the operation in flight.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::lives::Lives;
use crate::rival::is_rival;
use crate::rivals::Rivals;
use crate::script::{Change, Key, Op};
use crate::subject::Contents;
use crate::violation::Problem;

/// The contents of a store, or `None` if the medium holds no completely formatted store.
pub type State = Option<Contents>;

/// The states that a crash may leave now.
#[derive(Clone, Debug, Default)]
pub struct Oracle {
    acknowledged: State,
    lives: Lives,
    flight: Flight,
    /// The value of `lives` if the operation in flight takes effect.
    next_lives: Lives,
    /// Keys of which a reader has seen a value later than the acknowledged one, and how many values later.
    seen: BTreeMap<Vec<u8>, usize>,
    /// The values that the second writer's key may hold; the states do not contain this key.
    rivals: Rivals,
    fingerprint: u64,
}

/// The effect of the operation in flight.
#[derive(Clone, Debug, Default, Hash)]
enum Flight {
    /// No operation is in flight.
    #[default]
    Nothing,
    /// This state, reached in one step.
    Whole(State),
    /// The values that each key takes, one after the other; the last one is final.
    EachKey(BTreeMap<Vec<u8>, Vec<Option<Vec<u8>>>>),
}

impl Oracle {
    /// Creates an oracle that accepts exactly `state`, with nothing in flight.
    #[must_use]
    pub fn exactly(mut state: State) -> Oracle {
        let rivals = state.as_mut().map(Rivals::of).unwrap_or_default();
        Oracle { acknowledged: state, rivals, ..Oracle::default() }.with_fingerprint()
    }

    /// Records that the second writer begins to write `value`, or to delete (`None`).
    pub(crate) fn rival_begins(&mut self, value: &Option<Vec<u8>>) {
        self.rivals.begin(value);
        self.remember();
    }

    /// Records that the second writer's write was acknowledged or refused.
    pub(crate) fn rival_ends(&mut self, value: &Option<Vec<u8>>, is_acknowledged: bool) {
        if is_acknowledged {
            self.rivals.acknowledge(value)
        } else {
            self.rivals.refuse(value)
        }
        self.remember();
    }

    /// Returns true if the second writer's key may hold more than one value.
    pub(crate) fn is_rival_open(&self) -> bool {
        self.rivals.is_open()
    }

    /// Records that the second writer's key was found to hold `value` while nothing was in flight.
    ///
    /// # Errors
    /// If the key may not hold `value`.
    pub(crate) fn rival_found(&mut self, key: &[u8], value: Option<Vec<u8>>) -> Result<(), Problem> {
        self.rivals.found(key, value)?;
        self.remember();
        Ok(())
    }

    /// Returns the acknowledged state.
    #[must_use]
    pub fn acknowledged(&self) -> &State {
        &self.acknowledged
    }

    /// Records that `op` begins.
    pub fn begin(&mut self, op: &Op) {
        let (mut lives, mut state) = (self.lives.clone(), applied(&self.acknowledged, op));
        state.iter_mut().for_each(|contents| lives.apply(op, contents));
        self.next_lives = lives;
        self.flight = match op {
            Op::MultiPut(items) => Flight::EachKey(by_key(items.iter().map(|(key, value)| (key, Some(value))))),
            Op::MultiDelete(keys) => Flight::EachKey(by_key(keys.iter().map(|key| (key, None)))),
            _ => Flight::Whole(state),
        };
        if *op == Op::Clear {
            self.rivals.begin_clear();
        }
        self.remember();
    }

    /// Records that the operation in flight was acknowledged.
    ///
    /// # Panics
    /// If no operation is in flight.
    pub fn acknowledge(&mut self) {
        self.lives = std::mem::take(&mut self.next_lives);
        self.rivals.end_clear(true);
        match std::mem::take(&mut self.flight) {
            Flight::Nothing => panic!("an operation in flight"),
            Flight::Whole(state) => self.acknowledged = state,
            Flight::EachKey(values) => {
                let contents = self.acknowledged.as_mut().expect("a store that is written to");
                values.iter().for_each(|(key, values)| set(contents, key, values.last().and_then(Option::as_deref)));
            }
        }
        self.land();
    }

    /// Records that the operation in flight was refused without an effect.
    pub fn refuse(&mut self) {
        self.land();
    }

    /// Records that the operation in flight was refused and left `state`, in which a part of it may have taken effect.
    ///
    /// # Errors
    /// If the operation may not leave `state`.
    pub fn refuse_leaving(&mut self, state: State) -> Result<(), Problem> {
        self.judge(&state)?;
        self.acknowledged = without_rival(&state).into_owned();
        self.land();
        Ok(())
    }

    /// Ends the operation in flight.
    fn land(&mut self) {
        self.flight = Flight::Nothing;
        self.seen.clear();
        self.rivals.end_clear(false);
        self.remember();
    }

    /// Records that a reader saw `value` under `key`.
    ///
    /// # Errors
    /// If `value` is neither the old nor a new value, or is older than a value that was seen before.
    pub fn saw(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), Problem> {
        let (values, seen) = (self.values(key), self.last_seen_of(key));
        match values.iter().rposition(|&legal| legal == value) {
            None => Err(Problem::Reader(format!("{} has a value that is neither old nor new", Key(key)))),
            Some(last) if last < seen => {
                Err(Problem::Reader(format!("{} has its old value again after its new one was read", Key(key))))
            }
            Some(_) => {
                let first = values.iter().skip(seen).take_while(|&&legal| legal != value).count() + seen;
                if first > seen {
                    self.seen.insert(key.to_vec(), first);
                    self.remember();
                }
                Ok(())
            }
        }
    }

    /// Returns the acknowledged value of `key`, followed by the values that the operation in flight gives it.
    fn values(&self, key: &[u8]) -> Vec<Option<&[u8]>> {
        let old = value_in(&self.acknowledged, key);
        match &self.flight {
            Flight::Nothing => vec![old],
            Flight::Whole(state) => vec![old, value_in(state, key)],
            Flight::EachKey(values) => {
                let new = values.get(key).into_iter().flatten().map(Option::as_deref);
                [old].into_iter().chain(new).collect()
            }
        }
    }

    /// Returns the index in `values` of the latest value that was seen. An atomic operation is seen as one: a reader
    /// that saw any of its keys new saw all of them new.
    fn last_seen_of(&self, key: &[u8]) -> usize {
        match self.flight {
            Flight::Whole(_) => usize::from(!self.seen.is_empty()),
            _ => self.seen.get(key).copied().unwrap_or(0),
        }
    }

    /// Checks a state that was found after a crash.
    ///
    /// # Errors
    /// If `found` is not legal.
    pub fn judge(&self, found: &State) -> Result<(), Problem> {
        if let Some(contents) = found {
            let rival = contents.iter().find(|(key, _)| is_rival(key));
            let (key, value) = rival.map_or((&[][..], None), |(key, value)| (&key[..], Some(value.clone())));
            self.rivals.judge(key, &value)?;
        }
        let found = &*without_rival(found);
        let is_old = self.seen.is_empty() && self.acknowledged == *found;
        let (is_legal, wanted) = match &self.flight {
            Flight::Nothing => (is_old, &self.acknowledged),
            Flight::Whole(state) => {
                (is_old || state == found, if self.seen.is_empty() { &self.acknowledged } else { state })
            }
            Flight::EachKey(values) => return self.judge_each(values.keys(), found),
        };
        if is_legal { Ok(()) } else { Err(Problem::Contents(difference(wanted, found))) }
    }

    /// Checks each of `keys` separately and all other keys together.
    fn judge_each<'a>(&self, keys: impl Iterator<Item = &'a Vec<u8>>, found: &State) -> Result<(), Problem> {
        let mut wanted = self.acknowledged.clone();
        for key in keys {
            let value = value_in(found, key);
            if !self.values(key)[self.last_seen_of(key)..].contains(&value) {
                return Err(Problem::Contents(format!("{} has a value that it may not have", Key(key))));
            }
            wanted.iter_mut().for_each(|contents| set(contents, key, value));
        }
        if wanted == *found { Ok(()) } else { Err(Problem::Contents(difference(&wanted, found))) }
    }

    /// Returns a hash of the legal states: equal for oracles that accept the same states, and practically never for
    /// others.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    fn remember(&mut self) {
        let mut hasher = DefaultHasher::new();
        (&self.acknowledged, &self.flight, self.seen.is_empty(), &self.rivals).hash(&mut hasher);
        if let Flight::EachKey(_) = self.flight {
            self.seen.hash(&mut hasher);
        }
        self.fingerprint = hasher.finish();
    }

    fn with_fingerprint(mut self) -> Oracle {
        self.remember();
        self
    }
}

/// Returns the state without the second writer's key.
fn without_rival(state: &State) -> Cow<'_, State> {
    match state {
        Some(contents) if contents.keys().any(|key| is_rival(key)) => {
            let others = contents.iter().filter(|(key, _)| !is_rival(key));
            Cow::Owned(Some(others.map(|(key, value)| (key.clone(), value.clone())).collect()))
        }
        _ => Cow::Borrowed(state),
    }
}

fn value_in<'a>(state: &'a State, key: &[u8]) -> Option<&'a [u8]> {
    state.as_ref()?.get(key).map(Vec::as_slice)
}

/// Groups the changes by key, in their order.
fn by_key<'a>(
    changes: impl Iterator<Item = (&'a Vec<u8>, Option<&'a Vec<u8>>)>,
) -> BTreeMap<Vec<u8>, Vec<Option<Vec<u8>>>> {
    let mut values: BTreeMap<_, Vec<_>> = BTreeMap::new();
    changes.for_each(|(key, value)| values.entry(key.clone()).or_default().push(value.cloned()));
    values
}

fn set(contents: &mut Contents, key: &[u8], value: Option<&[u8]>) {
    match value {
        Some(value) => _ = contents.insert(key.to_vec(), value.to_vec()),
        None => _ = contents.remove(key),
    }
}

/// Returns true if all of these keys hold these values, or are absent where the value is `None`.
pub(crate) fn holds(state: &State, expected: &[Change]) -> bool {
    state.as_ref().is_some_and(|contents| expected.iter().all(|(key, value)| contents.get(key) == value.as_ref()))
}

/// Returns the state after the atomic operation `op`, without the effects of expiry.
fn applied(state: &State, op: &Op) -> State {
    let mut contents = match op {
        Op::Format => return Some(Contents::new()),
        Op::Clear => return state.as_ref().map(|_| Contents::new()),
        _ => state.clone()?,
    };
    match op {
        Op::Put(key, value) => _ = contents.insert(key.clone(), value.clone()),
        Op::Delete(key) => _ = contents.remove(key),
        Op::Cas { key, expected, new } if contents.get(key) == expected.as_ref() => {
            set(&mut contents, key, new.as_deref())
        }
        Op::Batch(changes) => changes.iter().for_each(|(key, value)| set(&mut contents, key, value.as_deref())),
        Op::BatchIf { expected, changes } if holds(state, expected) => {
            changes.iter().for_each(|(key, value)| set(&mut contents, key, value.as_deref()))
        }
        Op::Cas { .. }
        | Op::BatchIf { .. }
        | Op::MultiPut(_)
        | Op::MultiDelete(_)
        | Op::Format
        | Op::BatchExpiring(_)
        | Op::PutExpiring(..)
        | Op::Expire(..)
        | Op::At(_)
        | Op::Settle
        | Op::Clear
        | Op::Scan
        | Op::Compact
        | Op::Snapshot
        | Op::Release
        | Op::Reopen
        | Op::Full
        | Op::NotFull => {}
    }
    Some(contents)
}

/// Describes the first difference between `found` and `wanted`.
fn difference(wanted: &State, found: &State) -> String {
    let (Some(wanted), Some(found)) = (wanted, found) else {
        return if found.is_none() { "the store is gone".into() } else { "a store that was never formatted".into() };
    };
    let keys = wanted.keys().chain(found.keys());
    let differing = keys.into_iter().find(|key| wanted.get(*key) != found.get(*key));
    match differing.map(|key| (key, wanted.get(key), found.get(key))) {
        Some((key, Some(_), None)) => format!("{} is lost", Key(key)),
        Some((key, None, Some(_))) => format!("{} is present and should not be", Key(key)),
        Some((key, _, _)) => format!("{} has a wrong value", Key(key)),
        None => "the old state, where only the new one is legal".into(),
    }
}

#[cfg(test)]
mod tests;
