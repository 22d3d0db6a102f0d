//! The oracle: which states of a store are legal after a crash.
//!
//! What was acknowledged is there. The operation in flight is there whole or not at all; once any reader has seen it, it
//! is there. Nothing else is.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::script::{Key, Op};
use crate::subject::Contents;
use crate::violation::Problem;

/// What a medium holds: a store's contents, or no finished store.
pub type State = Option<Contents>;

/// The states that a crash may leave now.
#[derive(Clone, Debug, Default)]
pub struct Oracle {
    acknowledged: State,
    /// With the operation in flight wholly applied.
    next: Option<State>,
    /// The keys of which a reader has seen the next state.
    seen: BTreeSet<Vec<u8>>,
    fingerprint: u64,
}

impl Oracle {
    /// Nothing in flight, and exactly `state` acknowledged.
    #[must_use]
    pub fn exactly(state: State) -> Oracle {
        Oracle { acknowledged: state, ..Oracle::default() }.with_fingerprint()
    }

    /// What is acknowledged.
    #[must_use]
    pub fn acknowledged(&self) -> &State {
        &self.acknowledged
    }

    /// `op` begins.
    pub fn begin(&mut self, op: &Op) {
        self.next = Some(applied(&self.acknowledged, op));
        self.remember();
    }

    /// The operation in flight was acknowledged.
    ///
    /// # Panics
    /// If there is none.
    pub fn acknowledge(&mut self) {
        self.acknowledged = self.next.take().expect("an operation in flight");
        self.seen.clear();
        self.remember();
    }

    /// The operation in flight was refused: nothing has changed.
    pub fn refuse(&mut self) {
        self.next = None;
        self.seen.clear();
        self.remember();
    }

    /// A reader saw `value` under `key`.
    ///
    /// # Errors
    /// If it is neither the old nor the new value, or the old one after the new one was seen.
    pub fn saw(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), Problem> {
        let is_old = value == value_in(&self.acknowledged, key);
        let is_new = self.next.as_ref().is_some_and(|next| value == value_in(next, key));
        match (is_old, is_new) {
            (true, true) => Ok(()),
            (true, false) if !self.seen.contains(key) => Ok(()),
            (true, false) => Err(Problem::Reader(format!("{} was new and is old again", Key(key)))),
            (false, true) => {
                self.seen.insert(key.to_vec());
                self.remember();
                Ok(())
            }
            (false, false) => Err(Problem::Reader(format!("{} is neither old nor new", Key(key)))),
        }
    }

    /// Objects to a state that a crash may not leave.
    ///
    /// # Errors
    /// If `found` is not legal.
    pub fn judge(&self, found: &State) -> Result<(), Problem> {
        let is_new = self.next.as_ref() == Some(found);
        let is_old = self.seen.is_empty() && self.acknowledged == *found;
        if is_new || is_old {
            return Ok(());
        }
        let wanted = if self.seen.is_empty() { &self.acknowledged } else { self.next.as_ref().unwrap_or(found) };
        Err(Problem::Contents(difference(wanted, found)))
    }

    /// Equal for oracles that judge alike, and practically never for others.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    fn remember(&mut self) {
        let mut hasher = DefaultHasher::new();
        (&self.acknowledged, &self.next, self.seen.is_empty()).hash(&mut hasher);
        self.fingerprint = hasher.finish();
    }

    fn with_fingerprint(mut self) -> Oracle {
        self.remember();
        self
    }
}

fn value_in<'a>(state: &'a State, key: &[u8]) -> Option<&'a [u8]> {
    state.as_ref()?.get(key).map(Vec::as_slice)
}

/// What `op` makes of `state`.
fn applied(state: &State, op: &Op) -> State {
    let mut contents = match op {
        Op::Format => return Some(Contents::new()),
        Op::Clear => return state.as_ref().map(|_| Contents::new()),
        _ => state.clone()?,
    };
    match op {
        Op::Put(key, value) => _ = contents.insert(key.clone(), value.clone()),
        Op::Delete(key) => _ = contents.remove(key),
        Op::Format | Op::Clear | Op::Reopen | Op::Full | Op::Room => {}
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
mod tests {
    use super::*;

    fn state<const N: usize>(pairs: [(&str, &str); N]) -> State {
        Some(pairs.into_iter().map(|(key, value)| (key.into(), value.into())).collect())
    }

    fn put(key: &str, value: &str) -> Op {
        Op::Put(key.into(), value.into())
    }

    #[test]
    fn an_operation_in_flight_is_there_whole_or_not_at_all() {
        let mut oracle = Oracle::exactly(state([("a", "1")]));
        oracle.begin(&put("a", "2"));
        assert_eq!(oracle.judge(&state([("a", "1")])), Ok(()));
        assert_eq!(oracle.judge(&state([("a", "2")])), Ok(()));
        for illegal in [state([]), state([("a", "3")]), state([("a", "2"), ("b", "")]), None] {
            assert!(oracle.judge(&illegal).is_err(), "{illegal:?}");
        }
        oracle.acknowledge();
        assert!(oracle.judge(&state([("a", "1")])).is_err());
        assert_eq!(oracle.judge(&state([("a", "2")])), Ok(()));
    }

    #[test]
    fn a_refused_operation_changes_nothing() {
        let mut oracle = Oracle::exactly(state([]));
        oracle.begin(&put("a", "1"));
        oracle.refuse();
        assert_eq!(oracle.judge(&state([])), Ok(()));
        assert!(oracle.judge(&state([("a", "1")])).is_err());
    }

    #[test]
    fn what_a_reader_saw_must_stay() {
        let mut oracle = Oracle::exactly(state([("a", "1"), ("b", "1")]));
        oracle.begin(&Op::Delete("a".into()));
        let before = oracle.fingerprint();
        assert_eq!(oracle.saw(b"b", Some(b"1")), Ok(()));
        assert_eq!(oracle.saw(b"a", Some(b"1")), Ok(()));
        assert_eq!(oracle.judge(&state([("a", "1"), ("b", "1")])), Ok(()));
        assert_eq!(oracle.fingerprint(), before, "nothing new was seen");
        assert_eq!(oracle.saw(b"a", None), Ok(()));
        assert!(oracle.judge(&state([("a", "1"), ("b", "1")])).is_err());
        assert_eq!(oracle.judge(&state([("b", "1")])), Ok(()));
        assert_ne!(oracle.fingerprint(), before);
        assert!(oracle.saw(b"a", Some(b"1")).is_err(), "time does not run backwards");
        assert!(oracle.saw(b"b", Some(b"2")).is_err(), "a value nobody put");
    }

    #[test]
    fn before_format_there_is_no_store() {
        let mut oracle = Oracle::exactly(None);
        assert!(oracle.judge(&state([])).is_err());
        oracle.begin(&Op::Format);
        assert_eq!((oracle.judge(&None), oracle.judge(&state([]))), (Ok(()), Ok(())));
        oracle.acknowledge();
        assert!(oracle.judge(&None).is_err());
    }
}
