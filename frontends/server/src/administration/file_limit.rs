//! The limit on open files, which bounds the number of clients.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Files other than connections: the store, the standard streams, monitoring connections. As in Redis.
const RESERVED_FILE_COUNT: u64 = 32;
/// Files of each event loop: the poller, its duplicate for registering sockets, and the waker.
const LOOP_FILE_COUNT: u64 = 3;

/// Raises the process' soft limit for `clients` on `loop_count` event loops, and returns how many clients fit.
pub(crate) fn raise_for(clients: usize, loop_count: usize) -> usize {
    let reserved = RESERVED_FILE_COUNT + LOOP_FILE_COUNT * loop_count as u64;
    let wanted = clients as u64 + reserved;
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < wanted) {
        limit.current = Some(limit.maximum.map_or(wanted, |maximum| maximum.min(wanted)));
        // If this fails, the old limit stays; it is read back below.
        let _ = setrlimit(Resource::Nofile, limit);
    }
    let available = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX).saturating_sub(reserved);
    clients.min(usize::try_from(available).unwrap_or(usize::MAX)).max(1)
}
