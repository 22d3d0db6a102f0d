//! Sorted sets, by what their commands do.

pub(super) mod add;
pub(super) mod algebra;
pub(super) mod arguments;
pub(super) mod pop;
mod range;
pub(super) mod ranges;
pub(super) mod read;
pub(super) mod remove;
mod replies;
