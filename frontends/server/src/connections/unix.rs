//! Listening on a Unix socket.
//!
//! The socket file is created when the server is prepared, and listens as soon as the server is ready; until then
//! connections are refused. Its permissions are set in between, so that no client connects before. The file is removed
//! when the server stops, unless another file has replaced it.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener as Listener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mio::net::UnixListener;
use rustix::net::{self as socket, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use super::listen::BACKLOG_COUNT_MAX;

/// A socket's file, which is removed on drop.
pub(crate) struct SocketFile {
    pub(crate) path: Arc<Path>,
    /// Device and inode number of the file.
    identity: (u64, u64),
}

/// A bound socket with its file, before it listens.
pub(crate) struct Bound {
    listener: Listener,
    file: SocketFile,
}

/// Creates the socket file with these permissions, replacing a file on which no program listens.
///
/// # Errors
/// A path that is too long, a file that is not a socket, a socket with a listening program, or a file that cannot be
/// created. The error names the path.
pub(crate) fn bind(path: &Path, mode: Option<u32>) -> io::Result<Bound> {
    let about = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    remove_stale(path).map_err(about)?;
    let addr = SocketAddrUnix::new(path).map_err(|error| about(error.into()))?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let bound = socket::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
        .and_then(|socket| socket::bind(&socket, &addr).map(|()| socket));
    let listener = Listener::from(bound.map_err(|error| about(error.into()))?);
    let file = SocketFile { path: path.into(), identity: identity_of(path).map_err(about)? };
    if let Some(mode) = mode {
        fs::set_permissions(path, Permissions::from_mode(mode)).map_err(about)?;
    }
    Ok(Bound { listener, file })
}

/// Removes the socket file of a server that ended without removing it.
fn remove_stale(path: &Path) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    if !found.file_type().is_socket() {
        return Err(io::Error::new(
            ErrorKind::AlreadyExists,
            "the path exists and is not a socket; remove the file or choose another path",
        ));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(error) => Err(error),
        Ok(_) => Err(io::Error::new(ErrorKind::AddrInUse, "another program listens on this socket")),
    }
}

fn identity_of(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|found| (found.dev(), found.ino()))
}

impl Bound {
    /// Listens on the bound socket.
    pub(crate) fn listen(self) -> io::Result<(UnixListener, SocketFile)> {
        socket::listen(&self.listener, BACKLOG_COUNT_MAX)?;
        Ok((UnixListener::from_std(self.listener), self.file))
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity_of(&self.path).is_ok_and(|identity| identity == self.identity) {
            // If it stays, the next server finds that no program listens on it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl SocketFile {
    /// Returns its path for display.
    pub(crate) fn shown(&self) -> PathBuf {
        self.path.to_path_buf()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stale_socket_is_replaced_and_nothing_else() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("socket");
        let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
        let bound = bind(&path, Some(0o600)).expect("there is nothing");
        assert_eq!(mode(&path), 0o600);
        assert!(UnixStream::connect(&path).is_err(), "no client comes in yet");
        let (listener, file) = bound.listen().expect("it listens");
        let refused = bind(&path, None).err().expect("a program listens");
        assert!(refused.kind() == ErrorKind::AddrInUse && refused.to_string().contains("socket: another program"));
        // As after a crash: no program listens, and the file exists.
        std::mem::forget(file);
        drop(listener);
        let bound = bind(&path, Some(0o770)).expect("the old one is stale");
        assert_eq!(mode(&path), 0o770);
        drop(bound);
        assert!(!path.exists());
        fs::write(&path, "precious").expect("a file");
        let refused = bind(&path, None).err().expect("it is no socket");
        assert!(refused.to_string().contains("not a socket") && path.exists(), "{refused}");
    }

    #[test]
    fn file_that_took_place_stays() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("socket");
        let bound = bind(&path, None).expect("there is nothing");
        fs::remove_file(&path).expect("it is removed");
        fs::write(&path, "other").expect("a file");
        drop(bound);
        assert!(path.exists());
        assert!(bind(&dir.path().join("s".repeat(200)), None).is_err(), "too long a path");
    }
}
