//! The tree's errors as the kernel's error numbers.

use heap::HeapError;
use pbtree::Error;
use pmem::MediumError;

/// No such key.
pub(crate) const ENOENT: i64 = -2;
/// The task was killed during the call.
pub(crate) const EINTR: i64 = -4;
/// The kernel has no memory for the tree.
pub(crate) const ENOMEM: i64 = -12;
/// The key exists, and the request required it to be absent.
pub(crate) const EEXIST: i64 = -17;
/// A parameter of a new region or of a request is invalid.
pub(crate) const EINVAL: i64 = -22;
/// The region is full.
pub(crate) const ENOSPC: i64 = -28;
/// A key or value is too long.
pub(crate) const E2BIG: i64 = -7;
/// The answer is longer than the buffer for it.
pub(crate) const EMSGSIZE: i64 = -90;
/// The store is damaged ("structure needs cleaning").
pub(crate) const EUCLEAN: i64 = -117;
/// The region holds data that is not a store of this engine, or a store of a newer program.
pub(crate) const EMEDIUMTYPE: i64 = -124;

/// Converts an operation's error.
pub(crate) fn of(error: Error) -> i64 {
    match error {
        Error::Heap(error) => of_heap(error),
        Error::Stopped => EINTR,
        Error::KeyTooLong { .. } | Error::ValueTooLong { .. } => E2BIG,
        _ => EUCLEAN,
    }
}

/// Converts an error of the heap or of opening.
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

/// Returns true if the region had no space. It may have some once all free space is known.
pub(crate) fn is_full(error: &Error) -> bool {
    matches!(error, Error::Heap(HeapError::Medium(MediumError::Full { .. } | MediumError::Limit { .. })))
}
