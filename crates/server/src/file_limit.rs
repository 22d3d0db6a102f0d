//! The limit on open files, which bounds the number of clients.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Files that are not connections: the store, the pollers, the standard streams. As in Redis.
const RESERVED_FILE_COUNT: u64 = 32;

/// Raises the process' soft limit towards what `clients` need, and returns how many clients fit.
pub(crate) fn raise_for(clients: usize) -> usize {
    let wanted = clients as u64 + RESERVED_FILE_COUNT;
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < wanted) {
        limit.current = Some(limit.maximum.map_or(wanted, |maximum| maximum.min(wanted)));
        // A refusal leaves the old limit, which is read back below.
        let _ = setrlimit(Resource::Nofile, limit);
    }
    let available = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX).saturating_sub(RESERVED_FILE_COUNT);
    clients.min(usize::try_from(available).unwrap_or(usize::MAX)).max(1)
}
