//! Keeps a second writer away from a store.
//!
//! The lock is an open-file-description lock: the kernel drops it when the process dies, however it dies, and two
//! openings within one process exclude each other as well. It is the truth; the line of text that a writer leaves in
//! the lock file only helps to name the holder ([`crate::holder`]).

use std::error::Error;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::{fmt, io};

use crate::ForkGuard;
use crate::holder::{self, Holding};

/// A lock on a store, until it is dropped or the process dies. Forked children share it but do not keep it: dropping it
/// where it was taken releases it.
#[derive(Debug)]
pub struct StoreLock {
    file: File,
    holding: Holding,
    guard: ForkGuard,
}

/// Why a store could not be locked.
#[derive(Debug)]
#[non_exhaustive]
pub enum LockError {
    /// Somebody else holds it.
    Held {
        /// Who, such as `process 1234 (hikv serve ./data)`: a guess that follows 'in use by'.
        holder: String,
    },
    /// The operating system refused.
    Io {
        /// The lock file or device.
        path: PathBuf,
        /// What it answered.
        source: io::Error,
        /// What was being done, to follow 'cannot'.
        doing: &'static str,
    },
}

impl StoreLock {
    /// Locks the file or device `path` for a writer. A file that does not exist is created, for its owner alone; the
    /// text in it is replaced.
    ///
    /// # Errors
    /// [`LockError::Held`] if a writer or a reader has it, [`LockError::Io`] if the operating system refuses.
    pub fn exclusive(path: &Path) -> Result<StoreLock, LockError> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path);
        let lock = StoreLock::take(file.map_err(io_error(path, "open"))?, Holding::Writing, path)?;
        holder::record(&lock.file);
        Ok(lock)
    }

    /// Locks the file or device `path`, which must exist, for one of many readers.
    ///
    /// # Errors
    /// [`LockError::Held`] if a writer has it, [`LockError::Io`] if the operating system refuses.
    pub fn shared(path: &Path) -> Result<StoreLock, LockError> {
        let file = File::open(path).map_err(io_error(path, "open"))?;
        StoreLock::take(file, Holding::Reading, path)
    }

    fn take(file: File, holding: Holding, path: &Path) -> Result<StoreLock, LockError> {
        let guard = ForkGuard::new().map_err(io_error(path, "guard"))?;
        match set_lock(&file, holding.lock_type()) {
            Ok(()) => Ok(StoreLock { file, holding, guard }),
            Err(error) if is_busy(&error) => {
                let rival = rival(&file, holding).map_err(io_error(path, "examine the lock on"))?;
                Err(LockError::Held { holder: holder::describe(&file, rival) })
            }
            Err(error) => Err(io_error(path, "lock")(error)),
        }
    }
}

impl Drop for StoreLock {
    fn drop(&mut self) {
        // A child shares the lock: what it did to it would be done to the owner's.
        if !self.guard.in_owner() {
            return;
        }
        if self.holding == Holding::Writing {
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

/// How the lock that stands in the way is held.
fn rival(file: &File, wanted: Holding) -> io::Result<Holding> {
    let mut lock = whole_file(wanted.lock_type());
    fcntl(file, libc::F_OFD_GETLK, &mut lock)?;
    Ok(if lock.l_type == libc::F_RDLCK as libc::c_short { Holding::Reading } else { Holding::Writing })
}

fn fcntl(file: &File, command: libc::c_int, lock: &mut libc::flock) -> io::Result<()> {
    // SAFETY: both commands take a lock description, which lives through the call.
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
