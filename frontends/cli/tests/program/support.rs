//! Runs the program and checks its result.

use std::ffi::{CString, OsStr};
use std::io::Write;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use tempfile::TempDir;

/// A directory for one test, with a path for a store in it.
pub(crate) struct Place {
    dir: TempDir,
}

impl Place {
    pub(crate) fn new() -> Place {
        Place { dir: tempfile::tempdir().unwrap() }
    }

    /// Returns a directory in memory, if the machine has one, for tests whose many syncs show nothing.
    pub(crate) fn in_memory() -> Place {
        let memory = Path::new("/dev/shm");
        Place { dir: if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap() }
    }

    /// Runs `test` in a separate tmpfs of `size_mib`, which only this test sees. Skips the test, with a message, if
    /// mounting is refused.
    pub(crate) fn on_tmpfs(size_mib: u32, test: impl FnOnce(&Place) + Send) {
        let place = Place::new();
        let options = CString::new(format!("size={size_mib}m")).unwrap();
        let outcome = thread::scope(|scope| {
            let run = || mount_privately(place.dir.path(), &options).map(|()| test(&place));
            scope.spawn(run).join().unwrap_or_else(|panic| resume_unwind(panic))
        });
        if let Err(error) = outcome {
            left_out(&format!("a tmpfs cannot be mounted here: {error}"));
        }
    }

    /// Returns the path of the store, which may not exist yet.
    pub(crate) fn store(&self) -> PathBuf {
        self.file("store")
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Creates a file of `bytes`.
    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let file = self.file(name);
        std::fs::write(&file, bytes).unwrap();
        file
    }

    /// Runs `hikv COMMAND STORE ARGUMENTS…` with an empty standard input.
    pub(crate) fn run<A: AsRef<OsStr>>(&self, command: &str, arguments: &[A]) -> Ended {
        self.run_with_input(command, arguments, b"")
    }

    /// Like [`Place::run`], with `input` through a pipe on standard input.
    pub(crate) fn run_with_input<A: AsRef<OsStr>>(&self, command: &str, arguments: &[A], input: &[u8]) -> Ended {
        let mut child = hikv(command, &self.store(), arguments).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        thread::scope(|scope| {
            // The program may end without reading all of it.
            scope.spawn(move || stdin.write_all(input));
            Ended(child.wait_with_output().unwrap())
        })
    }
}

/// Returns `hikv COMMAND STORE ARGUMENTS…`, not started, with stdout and stderr piped.
pub(crate) fn hikv<A: AsRef<OsStr>>(command: &str, store: &Path, arguments: &[A]) -> Command {
    let mut hikv = program();
    hikv.arg(command).arg(store).args(arguments);
    hikv
}

/// Returns `hikv`, not started, with stdout and stderr piped.
pub(crate) fn program() -> Command {
    let mut hikv = Command::new(env!("CARGO_BIN_EXE_hikv"));
    hikv.stdout(Stdio::piped()).stderr(Stdio::piped());
    hikv
}

/// The output and exit status of a process.
pub(crate) struct Ended(pub(crate) Output);

impl Ended {
    #[track_caller]
    pub(crate) fn succeeded(self) -> Vec<u8> {
        assert_eq!(self.0.status.code(), Some(0), "{}", self.messages());
        self.0.stdout
    }

    /// Checks that the process ended with `code` and one line `hikv: …` that contains each of `words`.
    #[track_caller]
    pub(crate) fn failed(self, code: i32, words: &[&str]) {
        let messages = self.messages();
        assert_eq!(self.0.status.code(), Some(code), "{messages}");
        let reasons: Vec<&str> = messages.lines().filter(|line| line.starts_with("hikv: ")).collect();
        let [reason] = reasons[..] else { panic!("not one reason: {messages}") };
        for word in words {
            assert!(reason.contains(word), "'{word}' is missing: {reason}");
        }
        assert!(!messages.contains("panicked"), "{messages}");
    }

    /// Checks that an option was refused: exit code 2, and a message that contains each of `words`.
    #[track_caller]
    pub(crate) fn misused(self, words: &[&str]) {
        let messages = self.messages();
        assert_eq!(self.0.status.code(), Some(2), "{messages}");
        assert!(messages.starts_with("error: ") && words.iter().all(|word| messages.contains(word)), "{messages}");
    }

    pub(crate) fn messages(&self) -> String {
        String::from_utf8_lossy(&self.0.stderr).into_owned()
    }
}

/// Mounts a tmpfs that only the calling thread and its children see, and that ends with them.
fn mount_privately(at: &Path, options: &CString) -> rustix::io::Result<()> {
    // SAFETY: a mount namespace of its own changes no file descriptor and no memory.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS)? };
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    mount("tmpfs", at, "tmpfs", MountFlags::empty(), options.as_c_str())
}

#[expect(clippy::print_stderr, reason = "a skipped test must report it")]
pub(crate) fn left_out(why: &str) {
    eprintln!("left out: {why}");
}
