//! Locks that keep a second writer away from a store.
//!
//! The lock is an open-file-description lock: the kernel releases it when the process dies, in any way, and two
//! openings within one process also exclude each other. Only this lock counts; the line of text that a writer
//! leaves in the lock file merely helps to name the holder ([`crate::holder`]).
//!
//! A lock file can be removed, and another one created, while a process holds the first. So a file that must not
//! have two writers is itself locked, through the handle in use ([`StoreLock::of_open`]): the lock of a region
//! belongs to its bytes, under any name. The lock file is for stores that have no file yet, and for its text.
//!
//! # A DAX device with two nodes
//! Links, symbolic links and bind mounts of a device's node lead to one inode, and so to one lock. A second node of
//! the same device is another inode, which the first one's locks do not cover. No lock on an object that both nodes
//! share would work. Any local user can take a lock in `/sys/dev` or on an abstract socket, and could then keep the
//! store shut; also, a socket's name is different in another network namespace, and containers have their own nodes
//! there. In a container, the device's proper name in `/dev` cannot be determined. So an operator who gives a DAX
//! device two nodes has to keep two writers apart (`docs/deploying.md`).

use std::error::Error;
use std::fs::{self, File, OpenOptions};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::{fmt, io};

use crate::ForkGuard;
use crate::holder::{self, Holding};

/// A lock on a store, until it is dropped or the process dies. Forked children share it but do not keep it:
/// dropping it in the process that took the lock releases it.
#[derive(Debug)]
pub struct StoreLock {
    file: File,
    holding: Holding,
    /// True for a lock file, in which a writer leaves its name.
    has_text: bool,
    guard: ForkGuard,
}

/// The errors of locking a store.
#[derive(Debug)]
#[non_exhaustive]
pub enum LockError {
    /// Another opening holds the lock.
    Held {
        /// The holder, such as `process 1234 (hikv serve ./data)`: a guess that follows 'in use by'.
        holder: String,
    },
    /// An operation of the operating system failed.
    Io {
        /// The lock file, or the file to be locked.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
        /// The operation, as a verb that follows 'cannot'.
        doing: &'static str,
    },
}

impl StoreLock {
    /// Locks the lock file `path` for a writer. Creates a missing file, with access only for its owner; replaces
    /// the text. Does not follow a symbolic link.
    ///
    /// # Errors
    /// [`LockError::Held`] if a writer or a reader has it, [`LockError::Io`] if the operating system refuses, or
    /// the path is not a file.
    pub fn exclusive(path: &Path) -> Result<StoreLock, LockError> {
        let file = open(path, OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600));
        let lock = StoreLock::take(file?, Holding::Writing, true, path)?;
        holder::record(&lock.file);
        Ok(lock)
    }

    /// Locks the lock file `path`, which must exist, for one of many readers.
    ///
    /// # Errors
    /// As for [`StoreLock::exclusive`], but readers do not keep each other out.
    pub fn shared(path: &Path) -> Result<StoreLock, LockError> {
        StoreLock::take(open(path, OpenOptions::new().read(true))?, Holding::Reading, true, path)
    }

    /// Locks the open file or DAX device `file`, called `path`: for a writer, which has it open for writing, or for
    /// one of many readers. Its bytes do not change.
    ///
    /// # Errors
    /// As for [`StoreLock::exclusive`].
    pub fn of_open(file: impl AsFd, path: &Path, writing: bool) -> Result<StoreLock, LockError> {
        let file = file.as_fd().try_clone_to_owned().map_err(io_error(path, "lock"))?;
        let holding = if writing { Holding::Writing } else { Holding::Reading };
        StoreLock::take(file.into(), holding, false, path)
    }

    /// Removes the file `path`, if it exists and is not locked. If it is a link, the link is removed.
    ///
    /// # Errors
    /// As for [`StoreLock::exclusive`].
    pub fn remove_unused(path: &Path) -> Result<(), LockError> {
        let _lock = match without_following(OpenOptions::new().read(true).write(true)).open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if is_link(&error) => None,
            file => Some(StoreLock::of_open(file.map_err(io_error(path, "remove"))?, path, true)?),
        };
        fs::remove_file(path).map_err(io_error(path, "remove"))
    }

    /// Returns true if `path` leads to the locked file.
    ///
    /// # Errors
    /// If one of the two cannot be examined.
    pub fn is_of(&self, path: &Path) -> io::Result<bool> {
        let (locked, named) = (self.file.metadata()?, path.metadata()?);
        Ok((locked.dev(), locked.ino()) == (named.dev(), named.ino()))
    }

    /// Returns true if the locked file holds a store's bytes, and is not a lock file.
    #[must_use]
    pub fn holds_bytes(&self) -> bool {
        !self.has_text
    }

    /// Returns true if the locked file holds a store's bytes and has no name any more. A lock file may be removed.
    #[must_use]
    pub fn is_unlinked(&self) -> bool {
        self.holds_bytes() && self.file.metadata().is_ok_and(|status| status.is_file() && status.nlink() == 0)
    }

    fn take(file: File, holding: Holding, has_text: bool, path: &Path) -> Result<StoreLock, LockError> {
        let guard = ForkGuard::new().map_err(io_error(path, "guard"))?;
        match set_lock(&file, holding.lock_type()) {
            Ok(()) => Ok(StoreLock { file, holding, has_text, guard }),
            Err(error) if is_busy(&error) => {
                let rival = rival(&file, holding).map_err(io_error(path, "examine the lock on"))?;
                Err(LockError::Held { holder: holder::describe(&file, rival, has_text) })
            }
            Err(error) => Err(io_error(path, "lock")(error)),
        }
    }
}

/// Sets flags: do not follow a link, and do not wait for the other end of a pipe.
fn without_following(options: &mut OpenOptions) -> &mut OpenOptions {
    options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
}

fn is_link(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ELOOP)
}

/// Opens a lock file, which must be a regular file.
fn open(path: &Path, options: &mut OpenOptions) -> Result<File, LockError> {
    let file = without_following(options).open(path).map_err(|error| match error {
        error if is_link(&error) => io_error(path, "open")(io::Error::other("a symbolic link, not a lock file")),
        error => io_error(path, "open")(error),
    })?;
    let examined = file.metadata().map_err(io_error(path, "examine"))?;
    if examined.is_file() { Ok(file) } else { Err(io_error(path, "use")(io::Error::other("not a lock file"))) }
}

impl Drop for StoreLock {
    fn drop(&mut self) {
        // A child shares the lock: releasing it would release the owner's.
        if !self.guard.in_owner() {
            return;
        }
        if self.holding == Holding::Writing && self.has_text {
            holder::erase(&self.file);
        }
        let released = set_lock(&self.file, libc::F_UNLCK);
        debug_assert!(released.is_ok(), "{released:?}");
    }
}

impl Holding {
    fn lock_type(self) -> libc::c_int {
        match self {
            Holding::Writing => libc::F_WRLCK,
            Holding::Reading => libc::F_RDLCK,
        }
    }
}

fn set_lock(file: &File, lock_type: libc::c_int) -> io::Result<()> {
    fcntl(file, libc::F_OFD_SETLK, &mut whole_file(lock_type))
}

/// Returns the mode of the lock that another opening holds.
fn rival(file: &File, wanted: Holding) -> io::Result<Holding> {
    let mut lock = whole_file(wanted.lock_type());
    fcntl(file, libc::F_OFD_GETLK, &mut lock)?;
    Ok(if lock.l_type == libc::F_RDLCK as libc::c_short { Holding::Reading } else { Holding::Writing })
}

fn fcntl(file: &File, command: libc::c_int, lock: &mut libc::flock) -> io::Result<()> {
    // SAFETY: both commands use a lock description, which lives through the call.
    match unsafe { libc::fcntl(file.as_raw_fd(), command, std::ptr::from_mut(lock)) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

fn whole_file(lock_type: libc::c_int) -> libc::flock {
    // SAFETY: a lock description is plain numbers, for which zero is valid; zeros mean 'from the start to the end'.
    let zeros: libc::flock = unsafe { std::mem::zeroed() };
    libc::flock { l_type: lock_type as libc::c_short, l_whence: libc::SEEK_SET as libc::c_short, ..zeros }
}

fn is_busy(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES))
}

fn io_error(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> LockError {
    move |source| LockError::Io { path: path.to_owned(), source, doing }
}

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LockError::Held { holder } => write!(f, "the store is in use by {holder}"),
            LockError::Io { path, source, doing } => write!(f, "cannot {doing} {}: {source}", path.display()),
        }
    }
}

impl Error for LockError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            LockError::Io { source, .. } => Some(source),
            LockError::Held { .. } => None,
        }
    }
}
