//! Listening at a socket in the file system.
//!
//! The file is made when the server is prepared, and listened at once the server is ready: until then clients are refused. Its
//! permissions are set in between, so that no client comes in before. The file goes when the server stops, unless another file
//! has taken that place.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener as Listener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mio::net::UnixListener;
use rustix::net::{self as socket, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use super::listen::BACKLOG_COUNT_MAX;

/// A socket's file, which is removed with this.
pub(crate) struct SocketFile {
    pub(crate) path: Arc<Path>,
    /// Device and number of the file.
    identity: (u64, u64),
}

/// A socket with its file, at which no client can connect yet.
pub(crate) struct Bound {
    listener: Listener,
    file: SocketFile,
}

/// Makes the socket file, with these permissions, in place of one on which no program listens.
///
/// # Errors
/// If the path is too long, or there is another file, or a program that listens; if the file cannot be made. The error names it.
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

/// Removes the socket file of a server that has ended without removing it.
fn remove_stale(path: &Path) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    if !found.file_type().is_socket() {
        return Err(io::Error::new(ErrorKind::AlreadyExists, "there is a file, and it is no socket"));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(error) => Err(error),
        Ok(_) => Err(io::Error::new(ErrorKind::AddrInUse, "another program listens there")),
    }
}

fn identity_of(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|found| (found.dev(), found.ino()))
}

impl Bound {
    /// Listens at what was bound.
    pub(crate) fn listen(self) -> io::Result<(UnixListener, SocketFile)> {
        socket::listen(&self.listener, BACKLOG_COUNT_MAX)?;
        Ok((UnixListener::from_std(self.listener), self.file))
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity_of(&self.path).is_ok_and(|identity| identity == self.identity) {
            // If it stays, the next server finds that no program listens there.
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl SocketFile {
    /// Its path, for those that want to show it.
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
        // As after a crash: nobody listens, and the file is there.
        std::mem::forget(file);
        drop(listener);
        let bound = bind(&path, Some(0o770)).expect("the old one is stale");
        assert_eq!(mode(&path), 0o770);
        drop(bound);
        assert!(!path.exists());
        fs::write(&path, "precious").expect("a file");
        let refused = bind(&path, None).err().expect("it is no socket");
        assert!(refused.to_string().contains("no socket") && path.exists(), "{refused}");
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
