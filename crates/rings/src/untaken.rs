//! Hosts that have not taken the files that they were handed.
//!
//! A file that lies in a socket counts for the user of the process that has sent it, also after that process has closed the socket. Where as
//! many of a user's files lie in sockets as a process may have open, no process of that user hands over any more.
//! A host can bring that about by connecting again and again and taking nothing. So a device keeps the socket of a connection that is over
//! until the host has taken what lies in it, or is gone, and takes no further hosts where that are many.
//!
//! With those of connections that are there, of which each has two files open as well, there are fewer than the process may have.

use std::ffi::c_int;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::ioctl::{Getter, ioctl};

/// More have taken nothing than are there by mistake.
pub(crate) const UNTAKEN_COUNT_MAX: usize = 64;

/// Sockets of connections that are over.
#[derive(Default, Debug)]
pub(crate) struct Untaken(Mutex<Vec<Arc<UnixStream>>>);

impl Untaken {
    /// How many there are now.
    pub(crate) fn count(&self) -> usize {
        let mut sockets = self.0.lock();
        sockets.retain(|socket| !is_taken(socket));
        sockets.len()
    }

    /// The connection of this socket is over: the host is told, and the socket kept, if need be.
    pub(crate) fn keep(&self, socket: &Arc<UnixStream>) {
        // It may have closed before.
        let _ = socket.shutdown(Shutdown::Both);
        if !is_taken(socket) {
            self.0.lock().push(Arc::clone(socket));
        }
    }
}

/// Whether nothing that was sent lies in the other side's socket any more.
fn is_taken(socket: &UnixStream) -> bool {
    /// `SIOCOUTQ`: bytes that were sent and that nobody has read.
    const SENT_AND_UNREAD: rustix::ioctl::Opcode = 0x5411;
    // SAFETY: this request stores an int, of any socket.
    let unread = unsafe { ioctl(socket, Getter::<SENT_AND_UNREAD, c_int>::new()) };
    // What cannot be asked is not kept.
    unread.map_or(true, |unread| unread == 0)
}
