//! The history of a store that several threads used: each thread's calls, with times and answers.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// A call on one key with its answer. A value is represented by the number of the put that wrote it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Call {
    /// A get, and the put whose value it found, if any.
    Get(Option<u64>),
    /// A put.
    Put(u64),
    /// A delete, and whether the key existed.
    Delete(bool),
    /// A swap: the expected value or `None` for absent, the new value, and whether the swap took place.
    Swap(Option<u64>, Option<u64>, bool),
    /// A clear, which deleted this key among all others.
    Clear,
    /// A call without an answer, because the store was killed: it took effect before the call's end, or never.
    Unanswered(Write),
}

/// A call that was not answered.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Write {
    /// A put.
    Put(u64),
    /// A delete.
    Delete,
    /// A swap: the expected value or `None` for absent, and the new value.
    Swap(Option<u64>, Option<u64>),
}

/// A call on one key, with its times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// The call and its answer.
    pub call: Call,
    /// The clock before the call.
    pub begin: u64,
    /// The clock after the call.
    pub end: u64,
}

/// The clock that the threads of a history share. It counts its readings, so that no two are equal.
///
/// Reading it is a barrier. A history therefore cannot show that a store returns an answer shortly before the answer
/// holds, unless some thread could have noticed that through memory.
#[derive(Debug, Default)]
pub struct Clock(AtomicU64);

impl Clock {
    /// Returns the next time.
    pub fn now(&self) -> u64 {
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
    /// Creates an empty recorder.
    #[must_use]
    pub fn new(clock: &'a Clock) -> Recorder<'a> {
        Recorder { clock, events: Vec::new() }
    }

    /// Runs `work` and records the calls that it returns, each with its key as a separate event.
    ///
    /// # Errors
    /// Any error of `work`; nothing is recorded then.
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

/// The events of all threads, by key.
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
