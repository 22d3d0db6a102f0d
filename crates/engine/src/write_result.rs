//! The answer of a write, within an engine: of the way to an entry, of one attempt, of a change that is tried until it is done.

use core::convert::Infallible;

/// What came of a write that took place, or changed nothing. An engine without queues says so by leaving `N` out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteResult<T, N = Infallible> {
    /// It took place, and this is what came of it.
    Done(T),
    /// The key is not as the writer expected it, which may look again.
    Unexpected,
    /// The key's queue of changes is full; what was made for the write comes back.
    QueueFull(N),
}

/// What a write found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PriorState {
    /// The key was not there.
    Absent,
    /// Its item had expired. The hook is to be told of it, once the writer holds neither lock nor pin.
    Expired,
    /// The key was there.
    Present,
}

impl PriorState {
    /// What a write found whose decision was shown a value, or none: what was there to the decision had not expired.
    #[must_use]
    pub fn present_if(self, is_shown: bool) -> PriorState {
        if is_shown { PriorState::Present } else { self }
    }
}

impl<T, N> WriteResult<T, N> {
    /// The same answer, with another word for what came of it.
    pub fn map<U>(self, of: impl FnOnce(T) -> U) -> WriteResult<U, N> {
        match self {
            WriteResult::Done(done) => WriteResult::Done(of(done)),
            WriteResult::Unexpected => WriteResult::Unexpected,
            WriteResult::QueueFull(back) => WriteResult::QueueFull(back),
        }
    }
}
