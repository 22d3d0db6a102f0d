//! The states of a page of a region that is larger than its memory, and the steps between them.
//!
//! ```text
//!   Absent, Fresh, Evicted --claim--> Loading --settle--> Present, Cold or Stored (or Lost)
//!   Present --cool--> Cold --unlink--> Evicting --take--> Loading --> Evicted
//!   Cold, Evicting --reach--> Present; Evicting --reach_once--> Cold
//!   Present, Cold, Evicting, Writing --reach_to_store--> Stored
//!   Stored --begin_write--> Writing --end_write--> Present (or back to Stored)
//!   each of Present to Stored --keep--> Kept
//! ```
//!
//! # Why it is sound
//! A thread that uses a page is pinned (crate `epoch`), and loads the state after it has pinned itself. Or it has made
//! the page `Kept`, which no step leaves.
//!
//! - *Eviction.* The state is the link to the page. `unlink` removes it; then a grace period passes; then `take`. A
//!   reader that loaded the state before `unlink` ends its pin before the period is over. A reader that pins itself
//!   later finds `Evicting`, and makes it `Present`, so that `take` fails; or it finds `Loading` and waits. One thread
//!   evicts at a time, so no second `unlink` can follow between the first one's grace period and its `take`. A reader
//!   that will not need the page again makes it `Cold` instead of `Present`. That is linked as well: the next `unlink`
//!   is followed by a grace period of its own.
//! - *Stores.* A page that differs from the base is `Stored` or `Writing`, and these are not unlinked. A thread makes
//!   the page `Stored` before its first store, whether or not a flush follows: a word that is never flushed must not
//!   change back while the process lives.
//! - *Checkpoints.* `begin_write` removes `Stored`; then a grace period passes; then the page is copied. So a thread
//!   that found `Stored` has stored before the copy; a later one makes the page `Stored` again, and `end_write`
//!   fails. If the period does not end in time, the page becomes `Stored` again: the base has it, but it is not
//!   clean.
//! - *Loading.* As in `blocks`: the claim gives exclusive access to the memory, and `settle` releases it.
//!
//! All steps but `settle` are exchanges, so a reader of `Present` sees the bytes of the thread that loaded the page,
//! whichever thread stored the state last.

use std::sync::atomic::Ordering;

use word::Word;

/// The content of a page's memory, and the step that it is in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub(crate) enum State {
    /// No memory. The base has the page, and the log may have later entries.
    Absent,
    /// No memory. The page was never used, and consists of zeros.
    Fresh,
    /// No memory. The base has the page.
    Evicted,
    /// Memory that one thread is filling or freeing.
    Loading,
    /// Zeros: the base could not be read there.
    Lost,
    /// The page is unlinked, and will be evicted unless a reader needs it.
    Evicting,
    /// Not used since the hand of the clock passed.
    Cold,
    /// As in the base.
    Present,
    /// A checkpoint writes it to the base.
    Writing,
    /// The base may not have the last stores.
    Stored,
    /// Never evicted: a thread without a pin uses it.
    Kept,
}

impl State {
    fn of(byte: u8) -> State {
        use State::{Absent, Cold, Evicted, Evicting, Fresh, Kept, Loading, Lost, Present, Stored, Writing};
        [Absent, Fresh, Evicted, Loading, Lost, Evicting, Cold, Present, Writing, Stored, Kept][byte as usize]
    }
}

/// The result of reaching for a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reached {
    /// The page may be used. It had this state before.
    Ready(State),
    /// The caller has to load it. It had this state before.
    Claimed(State),
    /// Another thread is loading it, or evicts it at this moment.
    Busy,
    /// It could not be read.
    Lost,
}

#[inline(always)]
pub(crate) fn state_of(word: &impl Word<u8>) -> State {
    State::of(word.load(Ordering::Acquire))
}

fn change(word: &impl Word<u8>, from: State, to: State) -> bool {
    word.compare_exchange(from as u8, to as u8, Ordering::AcqRel, Ordering::Acquire).is_ok()
}

/// Moves the page to the state that `next` returns for its present one; `None` leaves it as it is.
fn reach_by(word: &impl Word<u8>, next: impl Fn(State) -> Option<State>) -> Reached {
    loop {
        let state = state_of(word);
        match state {
            State::Loading => return Reached::Busy,
            State::Lost => return Reached::Lost,
            State::Absent | State::Fresh | State::Evicted => {
                if claim(word, state) {
                    return Reached::Claimed(state);
                }
            }
            resident => match next(resident) {
                Some(next) if !change(word, resident, next) => {}
                _ => return Reached::Ready(resident),
            },
        }
    }
}

/// Claims a page without memory that is in the state `from`; the caller loads it, and then settles it.
pub(crate) fn claim(word: &impl Word<u8>, from: State) -> bool {
    change(word, from, State::Loading)
}

/// Reaches for a page to read it, by a thread that is pinned.
pub(crate) fn reach(word: &impl Word<u8>) -> Reached {
    reach_by(word, |state| matches!(state, State::Evicting | State::Cold).then_some(State::Present))
}

/// Reaches for a page to read it once, by a thread that is pinned: the page stays cold.
pub(crate) fn reach_once(word: &impl Word<u8>) -> Reached {
    reach_by(word, |state| (state == State::Evicting).then_some(State::Cold))
}

/// Reaches for a page to store to it, by a thread that is pinned.
pub(crate) fn reach_to_store(word: &impl Word<u8>) -> Reached {
    reach_by(word, |state| (state < State::Stored).then_some(State::Stored))
}

/// Reaches for a page for good, by a thread that need not be pinned.
pub(crate) fn keep(word: &impl Word<u8>) -> Reached {
    reach_by(word, |state| (state != State::Kept).then_some(State::Kept))
}

/// Ends a claim.
pub(crate) fn settle(word: &impl Word<u8>, state: State) {
    word.store(state as u8, Ordering::Release);
}

/// Passes a page with the hand of the clock; returns true if it is unlinked now.
pub(crate) fn pass(word: &impl Word<u8>) -> bool {
    match state_of(word) {
        State::Present => {
            change(word, State::Present, State::Cold);
            false
        }
        State::Cold => change(word, State::Cold, State::Evicting),
        _ => false,
    }
}

/// Claims a page that was unlinked a grace period ago; returns false if a reader needs it.
pub(crate) fn take(word: &impl Word<u8>) -> bool {
    change(word, State::Evicting, State::Loading)
}

/// Links a page again whose grace period did not end in time.
pub(crate) fn relink(word: &impl Word<u8>) {
    change(word, State::Evicting, State::Present);
}

/// Begins to write a page to the base; false if it has no stores.
pub(crate) fn begin_write(word: &impl Word<u8>) -> bool {
    change(word, State::Stored, State::Writing)
}

/// Ends the write of a page that the base has durably; returns true if it is clean.
pub(crate) fn end_write(word: &impl Word<u8>) -> bool {
    change(word, State::Writing, State::Present)
}

/// Ends the write of a page whose copy may lack a store; returns true if no thread has stored to it since.
pub(crate) fn repeat_write(word: &impl Word<u8>) -> bool {
    change(word, State::Writing, State::Stored)
}

#[cfg(all(test, not(miri)))]
mod model;
