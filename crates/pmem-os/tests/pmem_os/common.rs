//! Directories to test on, and operations of the tests on a region.

use std::ffi::CStr;
use std::path::{Path, PathBuf};
use std::thread;

use pmem::{Medium, Offset};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use tempfile::TempDir;

/// Returns a directory on tmpfs (if there is one) and one on the file system for temporary files.
pub(crate) fn places() -> Vec<TempDir> {
    let memory = Path::new("/dev/shm");
    let mut places = vec![tempfile::tempdir().unwrap()];
    if memory.is_dir() {
        places.push(tempfile::tempdir_in(memory).unwrap());
    }
    places
}

/// Runs `test` in a fresh mount of `kind`, which only its thread sees and which ends with it. If mounting is
/// refused, skips the test and prints that.
pub(crate) fn on_mount(kind: &str, options: &CStr, test: impl FnOnce(PathBuf) + Send) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_owned();
    let thread = thread::scope(|scope| {
        scope.spawn(|| mount_privately(&path, kind, options).map(|()| test(path.clone()))).join()
    });
    match thread {
        Ok(Ok(())) => {}
        Ok(Err(error)) => skipped(&format!("{kind} cannot be mounted here: {error}")),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

fn mount_privately(at: &Path, kind: &str, options: &CStr) -> rustix::io::Result<()> {
    // SAFETY: a separate mount namespace changes no file descriptor and no memory.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS)? };
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    mount(kind, at, kind, MountFlags::empty(), options)
}

#[expect(clippy::print_stderr, reason = "a test that is left out must say so")]
pub(crate) fn skipped(why: &str) {
    eprintln!("left out: {why}");
}

/// Writes `bytes` at `at` and makes them durable.
pub(crate) fn put(medium: &impl Medium, at: u64, bytes: &[u8]) {
    // SAFETY: the tests keep no reference into spans that they write.
    unsafe { medium.write(Offset(at), bytes) };
    medium.flush(Offset(at).span(bytes.len() as u64));
    medium.order();
}

/// Returns the `len` bytes at `at`.
pub(crate) fn bytes(medium: &impl Medium, at: u64, len: u64) -> Vec<u8> {
    // SAFETY: the tests do not write at the same time.
    unsafe { medium.bytes(Offset(at).span(len)) }.unwrap().to_vec()
}
