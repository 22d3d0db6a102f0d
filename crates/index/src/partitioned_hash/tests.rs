//! Compares the index with a map, on a simulated region.
//!
//! Miri runs only [`threads`]: the bookkeeping of the crash medium would take minutes per test, and Miri supports
//! no assembly, with which loom switches stacks.
//!
//! ```text
//! cargo +nightly miri test -p hikv-pmem -p hikv-heap -p hikv-epoch -p hikv-index --lib
//! ```

#[cfg(not(miri))]
mod alone;
#[cfg(not(miri))]
mod chains;
#[cfg(not(miri))]
mod crash;
#[cfg(not(miri))]
mod deferred;
#[cfg(not(miri))]
mod given_up;
#[cfg(not(miri))]
mod interleavings;
mod large_batches;
mod lookup;
#[cfg(not(miri))]
mod model;
mod plain;
#[cfg(not(miri))]
mod power;
#[cfg(not(miri))]
mod protocol;
#[cfg_attr(miri, allow(dead_code, reason = "the other tests' methods"))]
mod rig;
#[cfg(not(miri))]
mod slots;
#[cfg(not(miri))]
mod splits;
#[cfg(not(miri))]
mod stalls;
mod threads;
#[cfg(not(miri))]
mod waiting;
#[cfg(not(miri))]
mod walks;
