//! Results of writes within an engine: of one attempt, or of a change that is repeated until it is done.

use core::convert::Infallible;

use crate::ExpiredItem;

/// The result of a write attempt. An engine without queues leaves out `N`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteResult<T, N = Infallible> {
    /// The write took place or changed nothing, with this result.
    Done(T),
    /// The key is not as the writer expected; the writer may look it up again.
    Unexpected,
    /// The key's queue of changes is full. Returns the item that was made for the write.
    QueueFull(N),
}

/// The state of the key before a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PriorState {
    /// The key was absent.
    Absent,
    /// The key's item had expired. The writer notifies the hook once it holds neither lock nor pin.
    Expired,
    /// The key was present.
    Present,
}

impl PriorState {
    /// Returns `Present` if the decision received a value, otherwise `self`: an item that a decision received had not
    /// expired.
    #[must_use]
    pub fn present_if(self, is_shown: bool) -> PriorState {
        if is_shown { PriorState::Present } else { self }
    }
}

impl<T, N> WriteResult<T, N> {
    /// Applies `of` to the result of a write that is done.
    pub fn map<U>(self, of: impl FnOnce(T) -> U) -> WriteResult<U, N> {
        match self {
            WriteResult::Done(done) => WriteResult::Done(of(done)),
            WriteResult::Unexpected => WriteResult::Unexpected,
            WriteResult::QueueFull(back) => WriteResult::QueueFull(back),
        }
    }
}

/// The result of a write attempt to a key that may have expired.
#[derive(Debug)]
pub struct Outcome<N = Infallible> {
    /// The state of the key before, if the write took place.
    pub answer: WriteResult<PriorState, N>,
    /// The item that had expired before, if there is a callback for it ([`crate::ExpiredHook::report`]).
    pub expired: Option<ExpiredItem>,
}

impl<N> Outcome<N> {
    /// The key is not as the writer expected.
    pub const UNEXPECTED: Outcome<N> = Outcome { answer: WriteResult::Unexpected, expired: None };

    /// Returns the outcome of a write that found the key in this state.
    #[must_use]
    pub fn found(before: PriorState) -> Outcome<N> {
        Outcome { answer: WriteResult::Done(before), expired: None }
    }

    /// Adjusts the outcome to the item that the caller's decision received: if it received one, the key counts as
    /// present.
    #[must_use]
    pub fn shown(self, is_shown: bool) -> Outcome<N> {
        let Outcome { answer, expired } = self;
        Outcome { answer: answer.map(|before| before.present_if(is_shown)), expired: expired.filter(|_| !is_shown) }
    }
}
