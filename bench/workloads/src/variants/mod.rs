//! Variants of HiKV: the alternatives with which the paper compares it, to measure the value of each idea (sections 4.3
//! and 4.5). They exist only for benchmarks: each wraps an unmodified store, none has a store format, and the engine
//! does not depend on any (`docs/decisions/0048-measure-every-store-through-one-trait.md`).
//!
//! | variant | difference | implementation |
//! |---|---|---|
//! | `hash-only` | no order, and so no scans | a store without order ([`HashOnly`]) |
//! | `sync` | the writer updates the tree before it returns | a write applies all changes, or waits until they are applied ([`Synchronous`]) |
//! | `par` | several trees, by ranges of keys, between which keys migrate | a store without order, and separate trees ([`Par`]) |
//! | `wal` | a log instead of ordered writes: 3 persists per put, 2 per delete | key and value are logged and persisted before the put ([`Wal`]) |
//! | `blocked-queues` | a scan locks the queues, as printed | writers share a lock that a scan holds until it has caught up ([`BlockedQueues`]) |

mod blocked;
mod hash_only;
mod par;
mod synchronous;
mod varied;
mod wal;

pub use blocked::BlockedQueues;
pub use hash_only::HashOnly;
pub use par::Par;
pub use synchronous::Synchronous;
pub use varied::{Varied, Way};
pub use wal::{Wal, WalMedium};
