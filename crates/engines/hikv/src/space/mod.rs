//! Space and its uses: garbage that readers may still read, keys that expire, gaps that compaction closes, and the
//! background that does one step of each at a time.

pub(crate) mod background;
mod collect;
pub(crate) mod compact;
pub(crate) mod expiry;
pub(crate) mod reap;
pub(crate) mod reaper;
mod step;
