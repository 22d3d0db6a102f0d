//! A plain socket.

use std::io;
use std::os::fd::AsFd;

use rustix::buffer::spare_capacity;

use super::Arrived;

/// Reads once.
#[inline]
pub(super) fn read(socket: impl AsFd, bytes: &mut Vec<u8>) -> io::Result<Arrived> {
    let free_bytes = bytes.capacity() - bytes.len();
    match rustix::io::retry_on_intr(|| rustix::io::read(&socket, spare_capacity(bytes))) {
        Ok(0) => Ok(Arrived::End),
        Ok(read_bytes) if read_bytes == free_bytes => Ok(Arrived::Some),
        Ok(_) => Ok(Arrived::All),
        Err(rustix::io::Errno::AGAIN) => Ok(Arrived::All),
        Err(error) => Err(error.into()),
    }
}
