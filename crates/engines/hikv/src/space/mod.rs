//! Room, and what takes it: garbage that readers may still look at, keys that expire, holes that compaction closes, and the
//! background that does a step of each at a time.

pub(crate) mod background;
mod collect;
pub(crate) mod compact;
pub(crate) mod expiry;
pub(crate) mod reap;
pub(crate) mod reaper;
mod step;
