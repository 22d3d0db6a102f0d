//! The files of a store in a directory, by name, and the locks on them.

use pmem_os::StoreLock;

pub(crate) const REGION_NAME: &str = "store.hikv";
pub(crate) const UNFINISHED_NAME: &str = "store.hikv.new";
pub(crate) const LOG_NAME: &str = "journal.hikv";
pub(crate) const UNFINISHED_LOG_NAME: &str = "journal.hikv.new";
pub(crate) const LOCK_NAME: &str = "lock";

/// The locks that keep other processes away from a store. The lock file is missing among them if a reader cannot
/// create it, for example on a read-only file system, which has no writers.
pub(crate) type Locks = Vec<StoreLock>;
