//! SAVE and BGSAVE: a backup of the store, which is a store itself.
//!
//! | step | a crash after it leaves |
//! |---|---|
//! | 1 what an earlier one left under the name `PLACE.new` is removed | the last backup |
//! | 2 the backup is written, synced, and called `PLACE.new` ([`hikv::Store::backup`]) | the same |
//! | 3 `PLACE.new` and PLACE change names, in one step where the file system can; the first backup is renamed | the new one |
//! | 4 the old one, now `PLACE.new`, is removed | the new one |
//!
//! Where the file system cannot exchange names, PLACE is renamed to `PLACE.old` first: a crash then may leave the old one
//! there and the new one under `PLACE.new`, both whole.
//!
//! One save runs at a time, beside writers: it is of one moment. The server's end waits for it.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use hikv::Store;
use parking_lot::Mutex;
use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::errors::{Refusal, Sentence};

/// What the directory of backups is called in that of the store.
const DEFAULT_NAME: &str = "backup";

pub(crate) struct Saves {
    /// None where the store is no directory and nobody has said where.
    place: Option<PathBuf>,
    state: Arc<State>,
    background: Mutex<Option<JoinHandle<()>>>,
}

struct State {
    is_running: AtomicBool,
    /// In seconds since the Unix epoch; at first when the server started.
    last_s: AtomicU64,
    has_failed: AtomicBool,
    took_s: AtomicU64,
}

/// The right to save: one at a time.
struct Turn(Arc<State>);

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.is_running.store(false, Ordering::Release);
    }
}

impl Saves {
    /// To `place`, or into the directory of the store.
    pub(crate) fn new(store: &Store, place: Option<PathBuf>) -> Saves {
        let default = || store.path().is_dir().then(|| store.path().join(DEFAULT_NAME));
        let state = State {
            is_running: AtomicBool::new(false),
            last_s: AtomicU64::new(now_s()),
            has_failed: AtomicBool::new(false),
            took_s: AtomicU64::new(0),
        };
        Saves { place: place.or_else(default), state: Arc::new(state), background: Mutex::new(None) }
    }

    /// When the last save that succeeded ended, in seconds since the Unix epoch.
    pub(crate) fn last_s(&self) -> u64 {
        self.state.last_s.load(Ordering::Relaxed)
    }

    pub(crate) fn is_running(&self) -> bool {
        self.state.is_running.load(Ordering::Acquire)
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.state.has_failed.load(Ordering::Relaxed)
    }

    /// How long the last save took, in seconds.
    pub(crate) fn took_s(&self) -> u64 {
        self.state.took_s.load(Ordering::Relaxed)
    }

    /// Saves; returns when the backup is in its place.
    pub(crate) fn save(&self, store: &Store) -> Result<(), Refusal> {
        let (turn, place) = self.begin()?;
        turn.0.save(store, &place).map_err(|what| Refusal::Names(format!("the backup failed: {what}")))
    }

    /// Begins to save.
    pub(crate) fn save_in_background(&self, store: &Store) -> Result<(), Refusal> {
        let (turn, place) = self.begin()?;
        let store = store.clone();
        // Who asks for it is told by INFO.
        let work = move || _ = turn.0.save(&store, &place);
        let spawned = thread::Builder::new().name("hikv-save".into()).spawn(work);
        let thread = spawned.map_err(|error| Refusal::Names(format!("no thread to save in: {error}")))?;
        *self.background.lock() = Some(thread);
        Ok(())
    }

    fn begin(&self) -> Result<(Turn, PathBuf), Refusal> {
        let place = self.place.clone().ok_or(Sentence::NoBackupPlace)?;
        if self.state.is_running.swap(true, Ordering::AcqRel) {
            return Err(Sentence::SaveRunning.into());
        }
        Ok((Turn(Arc::clone(&self.state)), place))
    }

    /// Waits for the save that runs, if there is one.
    pub(crate) fn finish(&self) {
        if let Some(thread) = self.background.lock().take() {
            let _ = thread.join();
        }
    }
}

impl State {
    fn save(&self, store: &Store, place: &Path) -> Result<(), String> {
        let began = Instant::now();
        let outcome = replace(store, place);
        self.took_s.store(began.elapsed().as_secs(), Ordering::Relaxed);
        self.has_failed.store(outcome.is_err(), Ordering::Relaxed);
        if outcome.is_ok() {
            self.last_s.store(now_s(), Ordering::Relaxed);
        }
        outcome
    }
}

fn replace(store: &Store, place: &Path) -> Result<(), String> {
    let in_words = |error: io::Error| format!("{}: {error}", place.display());
    let (new, old) = (beside(place, ".new"), beside(place, ".old"));
    remove(&new).map_err(in_words)?;
    store.backup(&new, |_| {}).map_err(|error| error.to_string())?;
    if !place.exists() {
        return fs::rename(&new, place).map_err(in_words);
    }
    match renameat_with(CWD, &new, CWD, place, RenameFlags::EXCHANGE) {
        Ok(()) => remove(&new).map_err(in_words),
        Err(_) => {
            remove(&old).map_err(in_words)?;
            fs::rename(place, &old).and_then(|()| fs::rename(&new, place)).map_err(in_words)?;
            remove(&old).map_err(in_words)
        }
    }
}

fn beside(place: &Path, suffix: &str) -> PathBuf {
    let name = place.file_name().unwrap_or_default();
    place.with_file_name(OsString::from_iter([name, OsStr::new(suffix)]))
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
