//! Streams, by what their commands do.

pub(super) mod add;
mod arguments;
pub(super) mod claim;
mod deliver;
pub(super) mod groups;
pub(super) mod info;
pub(super) mod pending;
pub(super) mod range;
pub(super) mod read;
mod replies;
mod trim;
