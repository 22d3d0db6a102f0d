//! Connections whose hosts have not received their files.
//!
//! A file in a socket's queue counts against the limit of the user who sent it, even after the sender has closed the
//! socket. If a user has as many files in sockets as a process may have open, none of the user's processes can pass
//! further files. A host can cause that by connecting repeatedly without receiving. So a device keeps the socket of an
//! ended connection until the host has received the files or is gone, and accepts no further hosts while there are many
//! such sockets.
//!
//! Together with those of existing connections, each of which also has two open files, their number stays below the
//! process' limit.

use std::ffi::c_int;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::ioctl::{Getter, ioctl};

/// More than can be left by accident.
pub(crate) const UNCLAIMED_COUNT_MAX: usize = 64;

/// Sockets of ended connections.
#[derive(Default, Debug)]
pub(crate) struct Unclaimed(Mutex<Vec<Arc<UnixStream>>>);

impl Unclaimed {
    /// Returns their present number.
    pub(crate) fn count(&self) -> usize {
        let mut sockets = self.0.lock();
        sockets.retain(|socket| !is_taken(socket));
        sockets.len()
    }

    /// Shuts down the socket of an ended connection, and keeps it if necessary.
    pub(crate) fn keep(&self, socket: &Arc<UnixStream>) {
        // The host may have closed it before.
        let _ = socket.shutdown(Shutdown::Both);
        if !is_taken(socket) {
            self.0.lock().push(Arc::clone(socket));
        }
    }
}

/// Returns whether the other side has received everything.
fn is_taken(socket: &UnixStream) -> bool {
    /// `SIOCOUTQ`: bytes that were sent and not yet read.
    const SENT_AND_UNREAD: rustix::ioctl::Opcode = 0x5411;
    // SAFETY: this request stores an int, for any socket.
    let unread = unsafe { ioctl(socket, Getter::<SENT_AND_UNREAD, c_int>::new()) };
    // A socket that cannot be queried is not kept.
    unread.map_or(true, |unread| unread == 0)
}
