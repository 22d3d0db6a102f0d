//! Other processes: a second opener, and forked children.

use std::env;
use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use hikv::{EngineKind, Error, OpenError, Options, Store};

use crate::bad_files::store::{Closed, ITEM_COUNT, assert_holds, assert_names, key};

/// In a restarted test, the store to hold, and whether for writing.
const ROLE: &str = "HIKV_TEST_HOLDS";

/// Another process that holds a store until it is stopped or killed.
struct Holder {
    child: Child,
    /// Stays open, so that the test harness in the other process can write to it.
    _output: Lines<BufReader<ChildStdout>>,
}

impl Holder {
    /// Starts `test` again to hold the store.
    fn start(test: &str, store: &Path, kind: &str) -> Holder {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args([test, "--exact", "--nocapture"]).env(ROLE, format!("{kind}{}", store.display()));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().ends_with("held")), "the other process did not get the store");
        Holder { child, _output: lines }
    }

    fn name(&self) -> String {
        format!("process {}", self.child.id())
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn stop(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }
}

/// In a process started for this, holds the store until standard input ends.
#[expect(clippy::print_stdout, reason = "the test that started this one waits for it")]
fn hold_if_started_for_it() -> bool {
    let Ok(role) = env::var(ROLE) else { return false };
    let (kind, path) = role.split_at(1);
    let store = if kind == "w" { Store::open(path) } else { Store::open_read_only(path) }.unwrap();
    store.len().unwrap();
    println!("held");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    true
}

fn assert_locked(error: &OpenError, store: &Closed, holder: &str) {
    assert!(matches!(error, OpenError::Locked { .. }), "{error}");
    assert_names(error, &store.path(), &["in use by", holder]);
}

#[test]
fn second_process_learns_lock_holder() {
    if hold_if_started_for_it() {
        return;
    }
    const TEST: &str = "bad_files::processes::second_process_learns_lock_holder";
    let store = Closed::new();
    let writer = Holder::start(TEST, &store.path(), "w");
    assert_locked(&Store::open(store.path()).unwrap_err(), &store, &writer.name());
    assert_locked(&Store::open_read_only(store.path()).unwrap_err(), &store, &writer.name());
    writer.kill();
    store.assert_intact();
    let reader = Holder::start(TEST, &store.path(), "r");
    assert_holds(&Store::open_read_only(store.path()).unwrap(), 0..ITEM_COUNT);
    assert_locked(&Store::open(store.path()).unwrap_err(), &store, &format!("{} (", reader.name()));
    reader.stop();
    store.assert_intact();
}

#[test]
fn second_open_in_process_is_refused() {
    let store = Closed::new();
    let first = Store::open(store.path()).unwrap();
    assert_locked(&Store::open(store.path()).unwrap_err(), &store, "this process itself");
    drop(first.clone());
    assert_locked(&Store::open_read_only(store.path()).unwrap_err(), &store, "this process itself");
    drop(first);
    store.assert_intact();
}

#[test]
fn second_open_names_holder_kind() {
    let store = Closed::new();
    let open = Store::open(store.path()).unwrap();
    let snapshot = open.snapshot().unwrap();
    let ordered = open.ordered().unwrap();
    let (range, again) = (ordered.range::<&str>(..).unwrap(), ordered.clone());
    let reader = open.reader(key(0)).unwrap().unwrap();
    let reported = |what: &str| assert_locked(&Store::open(store.path()).unwrap_err(), &store, what);
    reported("this process itself (1 handle, 2 ordered views, 1 range, 1 snapshot, 1 reader)");
    let other = store.path().parent().unwrap().join("other");
    std::os::unix::fs::symlink(store.path(), &other).unwrap();
    assert_names(&Store::open(&other).unwrap_err(), &other, &["(1 handle, 2 ordered views"]);
    let refused = open.close().unwrap_err().to_string();
    assert!(refused.contains("2 ordered views, 1 range, 1 snapshot, 1 reader"), "{refused}");
    drop((ordered, again, range));
    reported("this process itself (1 snapshot, 1 reader)");
    drop(reader);
    reported("this process itself (1 snapshot)");
    let clone = snapshot.store().clone();
    drop(snapshot);
    reported("this process itself (1 handle)");
    drop(clone);
    store.assert_intact();
}

/// Returns the exit code of a forked child that ran `act`.
fn forked(act: impl FnOnce() -> bool) -> i32 {
    // SAFETY: the child calls the store, which takes no lock before it notices the fork, and leaves without unwinding.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork: {}", std::io::Error::last_os_error());
    if pid == 0 {
        let code = if act() { 42 } else { 1 };
        // SAFETY: leaves immediately; no destructor of the parent's runs in the child.
        unsafe { libc::_exit(code) }
    }
    let mut status = 0;
    // SAFETY: the child is ours and `status` lives through the call.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    assert!(libc::WIFEXITED(status), "the child was killed by signal {}", libc::WTERMSIG(status));
    libc::WEXITSTATUS(status)
}

fn is_forked<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::Forked))
}

#[test]
fn forked_child_gets_an_error() {
    let store = Closed::new();
    let open = Store::open(store.path()).unwrap();
    let mut inherited = Some(open.clone());
    let code = forked(|| {
        let child = inherited.take().expect("it was cloned for the child");
        let refused = is_forked(child.get(b"key"))
            && is_forked(child.put(b"key", b"value"))
            && is_forked(child.delete(b"key"))
            && is_forked(child.len())
            && is_forked(child.clear())
            && is_forked(child.verify(|_| {}));
        refused && is_forked(child.close())
    });
    assert_eq!(code, 42);
    assert_eq!(Error::Forked.to_string(), "the store was opened before a fork; open it again in the child process");
    assert_holds(&open, 0..ITEM_COUNT);
    open.put("after the fork", "1").unwrap();
    open.delete("after the fork").unwrap();
    assert_locked(&Store::open(store.path()).unwrap_err(), &store, "this process itself");
    drop((open, inherited));
    store.assert_intact();
}

/// The threads that write copies remain in the parent: the child does not wait for them.
#[test]
fn forked_child_drops_store_with_threads() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::new()
        .engine(EngineKind::RewoHash)
        .read_cache_bytes(1 << 16)
        .tuning(|tuning| tuning.read_cache_threads(2));
    let mut store = Some(options.open(dir.path()).unwrap());
    let code = forked(|| {
        // SAFETY: ends a child that waits forever.
        unsafe { libc::alarm(60) };
        drop(store.take());
        true
    });
    assert_eq!(code, 42);
    let store = store.expect("the child has taken its own");
    store.put("key", "value").unwrap();
    assert_eq!(store.get("key").unwrap().as_deref(), Some(&b"value"[..]));
}

#[test]
fn forked_child_leaves_every_engine_alone() {
    for &engine in EngineKind::ALL {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store");
        let mut store = Some(Options::new().engine(engine).open(&path).unwrap());
        let open = store.clone().expect("it was opened");
        open.put("before", "1").unwrap();
        for again in [Store::open(&path), Store::open_read_only(&path)] {
            assert_names(&again.unwrap_err(), &path, &["in use by this process itself"]);
        }
        let code = forked(|| {
            // SAFETY: ends a child that waits forever.
            unsafe { libc::alarm(60) };
            let child = store.take().expect("it was cloned for the child");
            let refused = is_forked(child.get("before")) && is_forked(child.put("k", "v")) && is_forked(child.clear());
            drop(child);
            refused
        });
        assert_eq!(code, 42, "{engine}");
        open.put("after", "2").unwrap();
        drop(store);
        open.close().unwrap();
        let store = Store::open_read_only(&path).unwrap();
        assert_eq!(store.len().unwrap(), 2, "{engine}");
    }
}
