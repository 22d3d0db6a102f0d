//! Judging a history of calls on one object: is there an order of the calls that respects real time and explains every
//! answer (Wing and Gong 1993, with the memoisation of Lowe 2017, just in time)?
//!
//! A call that was not answered may take effect until it ends, or never; it cannot take effect afterwards.
//!
//! The judge goes through the begins and returns in order and keeps every *configuration* that explains the answers so
//! far: the object's state, and which of the pending calls have taken effect. When a call returns, it must have taken
//! effect in every configuration that is kept. If none is left, the history has no explanation. The number of
//! configurations is bounded by the number of states times the number of subsets of the calls that overlap.

use std::collections::HashSet;
use std::hash::Hash;

/// A call on an object, with its answer and its times. Times are all different.
pub(crate) trait Timed {
    /// The state of the object.
    type State: Copy + Eq + Hash;

    /// Returns the times before and after the call.
    fn times(&self) -> (u64, u64);

    /// Returns false if the call may have had no effect, because it was not answered.
    fn is_answered(&self) -> bool;

    /// Returns the object's state after the call, or `None` if the call would have answered differently.
    fn effect(&self, state: Self::State) -> Option<Self::State>;
}

/// Returns the index of the first call, in the order of returns, at which no explanation is left.
///
/// # Panics
/// If more than 64 calls overlap.
pub(crate) fn first_unexplained<C: Timed>(start: C::State, calls: &[C]) -> Option<usize> {
    let begins = calls.iter().enumerate().map(|(call, timed)| (timed.times().0, call, true));
    let returns = calls.iter().enumerate().map(|(call, timed)| (timed.times().1, call, false));
    let mut moments: Vec<_> = begins.chain(returns).collect();
    moments.sort_unstable();
    let begin = Configuration { state: start, done: 0 };
    let mut judge = Judge { calls, pending: Vec::new(), configurations: HashSet::from([begin]) };
    moments.into_iter().find_map(|(_, call, is_begin)| {
        if is_begin {
            judge.begin(call);
            return None;
        }
        (!judge.explains_return(call)).then_some(call)
    })
}

/// A way in which the calls may have taken effect so far.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Configuration<S> {
    state: S,
    /// Bit i is set if the pending call i has taken effect.
    done: u64,
}

struct Judge<'a, C: Timed> {
    calls: &'a [C],
    /// Calls that have begun and not returned; their indices are the bits of [`Configuration::done`].
    pending: Vec<Option<usize>>,
    configurations: HashSet<Configuration<C::State>>,
}

impl<C: Timed> Judge<'_, C> {
    fn begin(&mut self, call: usize) {
        match self.pending.iter_mut().find(|place| place.is_none()) {
            Some(place) => *place = Some(call),
            None => self.pending.push(Some(call)),
        }
        assert!(self.pending.len() <= 64, "more than 64 calls at one time");
    }

    /// Lets pending calls take effect until this one has; returns false if it cannot.
    fn explains_return(&mut self, call: usize) -> bool {
        let place = self.pending.iter().position(|&pending| pending == Some(call)).expect("the call has begun");
        let (mut explained, mut seen) = (HashSet::new(), self.configurations.clone());
        if !self.calls[call].is_answered() {
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
    fn steps(&self, from: Configuration<C::State>) -> impl Iterator<Item = Configuration<C::State>> {
        let waiting = (0..).zip(&self.pending).filter(move |(place, _)| from.done & 1u64 << place == 0);
        waiting.filter_map(move |(place, pending)| {
            let state = self.calls[(*pending)?].effect(from.state)?;
            Some(Configuration { state, done: from.done | 1 << place })
        })
    }
}
