//! SAVE and BGSAVE: a backup of the store, which is itself a store.
//!
//! It replaces the previous backup by the steps of [`Store::backup_latest`], which also lists the files that are never
//! touched. A location that can never work is refused at start. A location that is occupied by something else only
//! causes a warning at start, because that may be corrected; a save then fails.
//!
//! One save runs at a time, concurrently with writers: it is a snapshot. Shutdown waits for it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use hikv::{BackupError, Store};
use parking_lot::Mutex;

use crate::errors::{FixedError, Refusal};

/// Name of the backup directory in the store's directory.
const DEFAULT_NAME: &str = "backup";

pub(crate) struct Saves {
    /// `None` if the store is not a directory and no location was given.
    place: Option<PathBuf>,
    state: Arc<State>,
    background: Mutex<Option<JoinHandle<()>>>,
}

struct State {
    is_running: AtomicBool,
    /// In seconds since the Unix epoch; initially the start of the server.
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
    /// Creates the state for saves to `place`, or into the store's directory.
    ///
    /// # Errors
    /// A `place` that can never hold a backup of the store.
    pub(crate) fn new(store: &Store, place: Option<PathBuf>) -> io::Result<Saves> {
        if let Some(place) = &place {
            check(store, place)?;
        }
        let default = || store.path().is_dir().then(|| store.path().join(DEFAULT_NAME));
        let state = State {
            is_running: AtomicBool::new(false),
            last_s: AtomicU64::new(now_s()),
            has_failed: AtomicBool::new(false),
            took_s: AtomicU64::new(0),
        };
        Ok(Saves { place: place.or_else(default), state: Arc::new(state), background: Mutex::new(None) })
    }

    /// Returns when the last successful save ended, in seconds since the Unix epoch.
    pub(crate) fn last_s(&self) -> u64 {
        self.state.last_s.load(Ordering::Relaxed)
    }

    pub(crate) fn is_running(&self) -> bool {
        self.state.is_running.load(Ordering::Acquire)
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.state.has_failed.load(Ordering::Relaxed)
    }

    /// Returns the duration of the last save in seconds.
    pub(crate) fn took_s(&self) -> u64 {
        self.state.took_s.load(Ordering::Relaxed)
    }

    /// Saves, and returns after the backup is in its place.
    pub(crate) fn save(&self, store: &Store) -> Result<(), Refusal> {
        let (turn, place) = self.begin()?;
        turn.0.save(store, &place).map_err(|what| Refusal::Message(format!("backup failed: {what}")))
    }

    /// Starts a save in the background.
    pub(crate) fn save_in_background(&self, store: &Store) -> Result<(), Refusal> {
        let (turn, place) = self.begin()?;
        let store = store.clone();
        // INFO shows the outcome.
        let work = move || _ = turn.0.save(&store, &place);
        let spawned = thread::Builder::new().name("hikv-save".into()).spawn(work);
        let thread =
            spawned.map_err(|error| Refusal::Message(format!("cannot start a thread for the backup: {error}")))?;
        *self.background.lock() = Some(thread);
        Ok(())
    }

    fn begin(&self) -> Result<(Turn, PathBuf), Refusal> {
        let place = self.place.clone().ok_or(FixedError::NoBackupPlace)?;
        if self.state.is_running.swap(true, Ordering::AcqRel) {
            return Err(FixedError::SaveRunning.into());
        }
        Ok((Turn(Arc::clone(&self.state)), place))
    }

    /// Waits for a running save.
    pub(crate) fn finish(&self) {
        if let Some(thread) = self.background.lock().take() {
            let _ = thread.join();
        }
    }
}

impl State {
    fn save(&self, store: &Store, place: &Path) -> Result<(), String> {
        let began = Instant::now();
        let outcome = store.backup_latest(place).map(drop).map_err(|error| error.to_string());
        self.took_s.store(began.elapsed().as_secs(), Ordering::Relaxed);
        self.has_failed.store(outcome.is_err(), Ordering::Relaxed);
        match &outcome {
            Ok(()) => self.last_s.store(now_s(), Ordering::Relaxed),
            Err(error) => tracing::error!(%error, "backup failed"),
        }
        outcome
    }
}

fn check(store: &Store, place: &Path) -> io::Result<()> {
    let refused = |error: BackupError| io::Error::new(io::ErrorKind::InvalidInput, format!("backup-dir: {error}"));
    hikv::FrontEnd::of(store).check_backup_place(place).map_err(refused)?;
    if let Err(error) = hikv::FrontEnd::of(store).check_latest_backup(place) {
        tracing::warn!(%error, "SAVE and BGSAVE will fail");
    }
    Ok(())
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
