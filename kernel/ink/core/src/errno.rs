//! What the tree says, as the kernel's error numbers.

use heap::HeapError;
use pbtree::Error;
use pmem::MediumError;

/// No such key.
pub(crate) const ENOENT: i64 = -2;
/// The task was killed meanwhile.
pub(crate) const EINTR: i64 = -4;
/// The tree wants memory that the kernel does not have.
pub(crate) const ENOMEM: i64 = -12;
/// The key is there, and was not to be.
pub(crate) const EEXIST: i64 = -17;
/// A parameter of a new region, or a region that is no store of this engine.
pub(crate) const EINVAL: i64 = -22;
/// The region is full.
pub(crate) const ENOSPC: i64 = -28;
/// A key or value is too long.
pub(crate) const E2BIG: i64 = -7;
/// The answer is longer than the room for it.
pub(crate) const EMSGSIZE: i64 = -90;
/// The store is damaged ("structure needs cleaning").
pub(crate) const EUCLEAN: i64 = -117;
/// The region holds something else than a store of this engine, or one of a newer program.
pub(crate) const EMEDIUMTYPE: i64 = -124;

/// An operation's error.
pub(crate) fn of(error: Error) -> i64 {
    match error {
        Error::Heap(error) => of_heap(error),
        Error::Stopped => EINTR,
        Error::KeyTooLong { .. } | Error::ValueTooLong { .. } => E2BIG,
        _ => EUCLEAN,
    }
}

/// The heap's, or opening's.
pub(crate) fn of_heap(error: HeapError) -> i64 {
    match error {
        HeapError::Medium(MediumError::Full { .. } | MediumError::Limit { .. }) => ENOSPC,
        HeapError::TooLong { .. } => E2BIG,
        HeapError::NoDram { .. } => ENOMEM,
        HeapError::Parameter { .. } => EINVAL,
        HeapError::Foreign
        | HeapError::WrongEngine { .. }
        | HeapError::NeedsJournal
        | HeapError::NotJournaled
        | HeapError::Newer { .. }
        | HeapError::UnknownFeatures { .. } => EMEDIUMTYPE,
        _ => EUCLEAN,
    }
}

/// True if the region had no room, so that it may have some once all free space is known.
pub(crate) fn is_full(error: &Error) -> bool {
    matches!(error, Error::Heap(HeapError::Medium(MediumError::Full { .. } | MediumError::Limit { .. })))
}
