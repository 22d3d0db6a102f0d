//! hikv for C and C++: the functions of `include/hikv.h`. The header is written by hand, and a test compares it with
//! this source.
//!
//! # Safety
//! The duties of a caller, for every function of this crate:
//! - A pointer to a handle is null, or comes from the function that makes such handles and was not freed.
//! - No thread uses a handle while another one frees it. One thread at a time uses an iterator, or a transaction with
//!   its iterators.
//! - A slice's pointer is valid for its length, or null with length 0. Buffers are valid for their capacity, and
//!   results for one value. Arguments and results of one call do not overlap.
//! - Callbacks return normally.
//!
//! All else is checked: null, lengths, kinds, the store to which a tree belongs, calls after a fork or a panic, and
//! calls inside a callback.
//!
//! # Handles
//! A `hikv_store` is the content of an `Arc`. Each tree, snapshot, iterator and transaction holds a clone, so nothing
//! of the store is freed under them; `hikv_close` counts the clones. Panics end in `call::run` and its callers,
//! which mark the store.

mod batch;
mod call;
mod code;
mod failure;
mod handle;
mod iter;
mod keys;
mod memory;
mod options;
mod snapshot;
mod store;
mod transaction;
mod tree;

pub use failure::{hikv_abi, hikv_last_error, hikv_version};
pub use handle::{hikv_snapshot, hikv_store, hikv_tree};
pub use iter::{hikv_iter, hikv_iter_free, hikv_iter_new, hikv_iter_next};
pub use keys::{
    hikv_clear, hikv_contains, hikv_delete, hikv_delete_range, hikv_get, hikv_get_version, hikv_get_with,
    hikv_increment, hikv_insert, hikv_len, hikv_multi_get, hikv_put, hikv_put_ttl,
};
pub use memory::hikv_slice;
pub use options::{hikv_options, hikv_options_init, hikv_transact_options};
pub use snapshot::{hikv_snapshot_free, hikv_snapshot_get, hikv_snapshot_new};
pub use store::{
    hikv_backup, hikv_close, hikv_deferred_write, hikv_is_durable, hikv_open, hikv_stats, hikv_sync, hikv_wait,
    hikv_write,
};
pub use transaction::{
    hikv_begin, hikv_transact, hikv_tx, hikv_tx_abort, hikv_tx_check, hikv_tx_commit, hikv_tx_delete, hikv_tx_get,
    hikv_tx_put, hikv_tx_range,
};
pub use tree::{hikv_tree_close, hikv_tree_drop, hikv_tree_list, hikv_tree_open, hikv_tree_rename, hikv_tree_swap};
