//! What the table owes to readers in moments that only its own volatile words tell apart.

pub(crate) use batches::Host;

mod batches;
mod interleavings;
