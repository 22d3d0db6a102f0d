//! Clients that are told of what others do.

pub(crate) mod expired;
pub(crate) mod monitors;
pub(crate) mod notify;
pub(crate) mod pubsub;
pub(crate) mod tracking;
pub(crate) mod watch;
