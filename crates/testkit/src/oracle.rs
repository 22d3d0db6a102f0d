//! The oracle: which states of a store are legal after a crash.
//!
//! What was acknowledged is there. The operation in flight is there whole or not at all; once any reader has seen it, the operation is
//! there. Nothing else is. A second writer's key ([`crate::Visitor::WriterAlways`]) holds what that was told, whatever becomes of the
//! operation in flight. Once a reader has seen one key of it new, readers see none old. Several puts or deletes at once are in flight each
//! on its own; those of one key follow each other.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::lives::Lives;
use crate::rival::is_rival;
use crate::rivals::Rivals;
use crate::script::{Change, Key, Op};
use crate::subject::Contents;
use crate::violation::Problem;

/// What a medium holds: a store's contents, or no finished store.
pub type State = Option<Contents>;

/// The states that a crash may leave now.
#[derive(Clone, Debug, Default)]
pub struct Oracle {
    acknowledged: State,
    lives: Lives,
    flight: Flight,
    /// What becomes of `lives` if the operation in flight takes place.
    next_lives: Lives,
    /// Of which keys a reader has seen a later value than the acknowledged one, and how many later.
    seen: BTreeMap<Vec<u8>, usize>,
    /// What the second writer's key may hold, which is in no state.
    rivals: Rivals,
    fingerprint: u64,
}

/// What the operation in flight leads to.
#[derive(Clone, Debug, Default, Hash)]
enum Flight {
    /// There is none.
    #[default]
    Nothing,
    /// This state, in one step.
    Whole(State),
    /// For each of these keys its last value, by way of those before it.
    EachKey(BTreeMap<Vec<u8>, Vec<Option<Vec<u8>>>>),
}

impl Oracle {
    /// Nothing in flight, and exactly `state` acknowledged.
    #[must_use]
    pub fn exactly(mut state: State) -> Oracle {
        let rivals = state.as_mut().map(Rivals::of).unwrap_or_default();
        Oracle { acknowledged: state, rivals, ..Oracle::default() }.with_fingerprint()
    }

    /// The second writer begins to write `value`, or to delete.
    pub(crate) fn rival_begins(&mut self, value: &Option<Vec<u8>>) {
        self.rivals.begin(value);
        self.remember();
    }

    /// It was acknowledged, or refused.
    pub(crate) fn rival_ends(&mut self, value: &Option<Vec<u8>>, is_acknowledged: bool) {
        if is_acknowledged {
            self.rivals.acknowledge(value)
        } else {
            self.rivals.refuse(value)
        }
        self.remember();
    }

    /// Whether a look at the second writer's key tells more than is known.
    pub(crate) fn is_rival_open(&self) -> bool {
        self.rivals.is_open()
    }

    /// The second writer's key holds this, and nothing is in flight.
    ///
    /// # Errors
    /// If it may not.
    pub(crate) fn rival_found(&mut self, key: &[u8], value: Option<Vec<u8>>) -> Result<(), Problem> {
        self.rivals.found(key, value)?;
        self.remember();
        Ok(())
    }

    /// What is acknowledged.
    #[must_use]
    pub fn acknowledged(&self) -> &State {
        &self.acknowledged
    }

    /// `op` begins.
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

    /// The operation in flight was acknowledged.
    ///
    /// # Panics
    /// If there is none.
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

    /// The operation in flight was refused: nothing has changed.
    pub fn refuse(&mut self) {
        self.land();
    }

    /// The operation in flight was refused, and some of it may have been done: this.
    ///
    /// # Errors
    /// If `state` is not one that the operation may leave.
    pub fn refuse_leaving(&mut self, state: State) -> Result<(), Problem> {
        self.judge(&state)?;
        self.acknowledged = without_rival(&state).into_owned();
        self.land();
        Ok(())
    }

    /// Nothing is in flight any more.
    fn land(&mut self) {
        self.flight = Flight::Nothing;
        self.seen.clear();
        self.rivals.end_clear(false);
        self.remember();
    }

    /// A reader saw `value` under `key`.
    ///
    /// # Errors
    /// If it is neither the old nor a new value, or one before another that was seen.
    pub fn saw(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), Problem> {
        let (values, seen) = (self.values(key), self.last_seen_of(key));
        match values.iter().rposition(|&legal| legal == value) {
            None => Err(Problem::Reader(format!("{} is neither old nor new", Key(key)))),
            Some(last) if last < seen => Err(Problem::Reader(format!("{} was new and is old again", Key(key)))),
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

    /// The acknowledged value of `key`, and those that it may have had since.
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

    /// Which of a key's values was seen last. What is one step was seen whole.
    fn last_seen_of(&self, key: &[u8]) -> usize {
        match self.flight {
            Flight::Whole(_) => usize::from(!self.seen.is_empty()),
            _ => self.seen.get(key).copied().unwrap_or(0),
        }
    }

    /// Objects to a state that a crash may not leave.
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

    /// Judges each of the keys by itself, and all others together.
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

    /// Equal for oracles that judge alike, and practically never for others.
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

/// The state without the second writer's key.
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

/// Each key's values, in their order.
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

/// Whether all of these keys hold these values, or none.
pub(crate) fn holds(state: &State, expected: &[Change]) -> bool {
    state.as_ref().is_some_and(|contents| expected.iter().all(|(key, value)| contents.get(key) == value.as_ref()))
}

/// What `op`, which is one step, makes of `state`, whatever the time.
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
        | Op::Room => {}
    }
    Some(contents)
}

/// The first way in which `found` is not `wanted`.
fn difference(wanted: &State, found: &State) -> String {
    let (Some(wanted), Some(found)) = (wanted, found) else {
        return if found.is_none() { "there is no store any more".into() } else { "a store out of nothing".into() };
    };
    let keys = wanted.keys().chain(found.keys());
    let differing = keys.into_iter().find(|key| wanted.get(*key) != found.get(*key));
    match differing.map(|key| (key, wanted.get(key), found.get(key))) {
        Some((key, Some(_), None)) => format!("{} is lost", Key(key)),
        Some((key, None, Some(_))) => format!("{} is a ghost", Key(key)),
        Some((key, _, _)) => format!("{} has a wrong value", Key(key)),
        None => "the old state, where only the new one is legal".into(),
    }
}

#[cfg(test)]
mod tests;
