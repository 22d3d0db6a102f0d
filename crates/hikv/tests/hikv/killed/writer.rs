//! The process that writes and is killed.

use std::env;
use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use fastrand::Rng;
use hikv::{Options, Store};

use crate::killed::changes::{Change, KEY_COUNT, THREAD_COUNT, changes, name, standing_value};

/// In a restarted test, the store's path.
const STORE: &str = "HIKV_TEST_WRITES";
/// In a restarted test, the number of the round.
const ROUND: &str = "HIKV_TEST_ROUND";

/// The acknowledgement of the first thread; other threads use the next bytes. Sent on stderr, which the test harness
/// does not use.
const FIRST_THREAD: u8 = b'a';

/// Starts `test` as the writer and kills it after `kill_after` acknowledged changes. Returns their number for each
/// thread.
pub(crate) fn run_and_kill(test: &str, store: &Path, round: u64, kill_after: usize) -> [usize; THREAD_COUNT as usize] {
    let mut writer = start(test, store, round);
    let mut acknowledgements = writer.stderr.take().expect("it is a pipe");
    let mut sent = vec![0; kill_after];
    let in_time = acknowledgements.read_exact(&mut sent);
    writer.kill().unwrap();
    in_time.unwrap_or_else(|error| panic!("the writer ended by itself: {error}: {}", text(&sent)));
    acknowledgements.read_to_end(&mut sent).unwrap();
    assert_eq!(writer.wait().unwrap().signal(), Some(libc::SIGKILL), "the writer ended by itself: {}", text(&sent));
    count(&sent)
}

fn start(test: &str, store: &Path, round: u64) -> Child {
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .args([&format!("killed::{test}"), "--exact", "--nocapture", "--include-ignored"])
        .env(STORE, store)
        .env(ROUND, round.to_string());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Returns the output of a writer that does not do its work.
fn text(sent: &[u8]) -> String {
    String::from_utf8_lossy(sent).into_owned()
}

fn count(sent: &[u8]) -> [usize; THREAD_COUNT as usize] {
    let mut counts = [0; THREAD_COUNT as usize];
    for byte in sent {
        let count = byte.checked_sub(FIRST_THREAD).and_then(|thread| counts.get_mut(usize::from(thread)));
        *count.unwrap_or_else(|| panic!("the writer complains: {}", text(sent))) += 1;
    }
    counts
}

/// In a process started as the writer, writes until it is killed, and reads one of `standing_count` values after each
/// change.
pub(crate) fn write_if_started_for_it(options: &Options, standing_count: u64) -> bool {
    let Ok(path) = env::var(STORE) else { return false };
    let round = env::var(ROUND).unwrap().parse().unwrap();
    let store = options.open(path).unwrap();
    thread::scope(|scope| {
        for thread in 0..THREAD_COUNT {
            let store = &store;
            scope.spawn(move || {
                let mut random = Rng::with_seed(round * THREAD_COUNT + thread);
                for change in changes(round, thread) {
                    make(store, thread, change);
                    if standing_count > 0 {
                        let key = KEY_COUNT + random.u64(..standing_count);
                        assert!(*store.get(name(key)).unwrap().unwrap() == standing_value(key), "{}", name(key));
                    }
                }
            });
        }
    });
    true
}

/// Makes one change, and acknowledges it.
fn make(store: &Store, thread: u64, Change { key, value }: Change) {
    match value {
        Some(value) => store.put(name(key), value).unwrap(),
        None => drop(store.delete(name(key)).unwrap()),
    }
    io::stderr().write_all(&[FIRST_THREAD + thread as u8]).unwrap();
}
