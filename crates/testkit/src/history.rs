//! What happened to a store that several threads worked on: which thread asked what of which key, when, and what was answered.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a thread asked of one key, and what it was told. Values are the numbers of the puts they came from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Call {
    /// The key was read: whose value was found, if any.
    Get(Option<u64>),
    /// A value was put.
    Put(u64),
    /// The key was deleted: whether it was there.
    Delete(bool),
    /// A value was to be put in place of this one, or of none: whose, what it was to be, and whether it was.
    Swap(Option<u64>, Option<u64>, bool),
    /// Every key was deleted, this one among them.
    Clear,
    /// Nobody answered, since the store was killed: it may have happened before the call's end, or not at all.
    Unanswered(Write),
}

/// What a thread asked for that was not answered.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Write {
    /// A value to be put.
    Put(u64),
    /// The key to be deleted.
    Delete,
    /// A value to be put in place of this one, or of none, if it is there.
    Swap(Option<u64>, Option<u64>),
}

/// A call on one key, and when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// What was asked and answered.
    pub call: Call,
    /// The clock before the call.
    pub begin: u64,
    /// The clock after it.
    pub end: u64,
}

/// The clock that the threads of a history share: it counts the moments that were looked at, so that no two are the same.
///
/// Reading it is a barrier. A history cannot show that a store answers a little before its answer holds, unless some
/// thread could have found that out through memory.
#[derive(Debug, Default)]
pub struct Clock(AtomicU64);

impl Clock {
    fn now(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst)
    }
}

/// One thread's part of a history.
#[derive(Debug)]
pub struct Recorder<'a> {
    clock: &'a Clock,
    events: Vec<(u64, Event)>,
}

impl<'a> Recorder<'a> {
    /// Nothing recorded yet.
    #[must_use]
    pub fn new(clock: &'a Clock) -> Recorder<'a> {
        Recorder { clock, events: Vec::new() }
    }

    /// Does `work` and records what it says was done to which keys, each as an event of its own.
    ///
    /// # Errors
    /// Whatever `work` says; nothing is recorded then.
    pub fn record<I, E>(&mut self, work: impl FnOnce() -> Result<I, E>) -> Result<(), E>
    where
        I: IntoIterator<Item = (u64, Call)>,
    {
        let begin = self.clock.now();
        let calls = work()?;
        let end = self.clock.now();
        self.events.extend(calls.into_iter().map(|(key, call)| (key, Event { call, begin, end })));
        Ok(())
    }
}

/// All that happened, key by key.
#[derive(Clone, Debug, Default)]
pub struct History {
    pub(crate) events: BTreeMap<u64, Vec<Event>>,
}

impl<'a> FromIterator<Recorder<'a>> for History {
    fn from_iter<I: IntoIterator<Item = Recorder<'a>>>(recorders: I) -> History {
        recorders.into_iter().flat_map(|recorder| recorder.events).collect()
    }
}

impl FromIterator<(u64, Event)> for History {
    fn from_iter<I: IntoIterator<Item = (u64, Event)>>(recorded: I) -> History {
        let mut history = History::default();
        for (key, event) in recorded {
            history.events.entry(key).or_default().push(event);
        }
        history
    }
}
