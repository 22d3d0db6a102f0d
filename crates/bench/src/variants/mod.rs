//! HiKV otherwise: what the paper compares it with, to see what each idea is worth (sections 4.3 and 4.5). For benchmarks alone:
//! each is a subject around a store as it ships, none is in a store's format, and the engine knows of none
//! (`docs/decisions/0048-measure-every-store-through-one-trait.md`).
//!
//! | variant | what is otherwise | how |
//! |---|---|---|
//! | `hash-only` | no order, and so no scans | a store without order ([`HashOnly`]) |
//! | `sync` | the tree is updated by the writer, before it returns | a write waits until all changes are applied, and applies them ([`Synchronous`]) |
//! | `par` | several trees, by ranges of keys, between which keys migrate | a store without order, and trees beside it ([`Par`]) |
//! | `wal` | a log in place of ordered writes: 3 persists a put, 2 a delete | key and value are logged and persisted before the put ([`Wal`]) |
//! | `blocked-queues` | a scan locks the queues, as printed | writers share a lock that a scan takes until it has caught up ([`BlockedQueues`]) |

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
