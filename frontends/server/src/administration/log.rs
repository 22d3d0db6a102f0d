//! The server's log: its lines, levels and rate limits.
//!
//! A line contains no key, value or password. A name that a client gave as a user name is logged only if that user
//! exists, because people type passwords where names belong. Lines that a client can cause at will are limited per
//! second; the next line states how many were dropped.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hikv::{Error, MediumError};
use lua_scripts::Level;
use parking_lot::Mutex;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::reload::{self, Handle};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, fmt as lines};

use crate::administration::log_writer::LineSender;
use crate::errors::Refusal;

/// Maximum lines of one kind per second.
const LINE_COUNT_MAX: u32 = 10;

/// The format of log lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LogFormat {
    /// Human-readable text.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// Log levels by Redis' names, from most to fewest messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LogLevel {
    /// Everything.
    Debug,
    /// Connecting and disconnecting clients.
    Verbose,
    /// Information for the operator: start, recovery, health, shutdown.
    #[default]
    Notice,
    /// Problems that need the operator's attention.
    Warning,
}

impl LogLevel {
    const ALL: [LogLevel; 4] = [LogLevel::Debug, LogLevel::Verbose, LogLevel::Notice, LogLevel::Warning];

    /// Parses a level name in lower case.
    pub fn of(name: &str) -> Option<LogLevel> {
        LogLevel::ALL.into_iter().find(|level| level.name() == name)
    }

    /// Returns Redis' name of the level.
    pub fn name(self) -> &'static str {
        match self {
            LogLevel::Debug => "debug",
            LogLevel::Verbose => "verbose",
            LogLevel::Notice => "notice",
            LogLevel::Warning => "warning",
        }
    }

    fn filter(self) -> LevelFilter {
        match self {
            LogLevel::Debug => LevelFilter::TRACE,
            LogLevel::Verbose => LevelFilter::DEBUG,
            LogLevel::Notice => LevelFilter::INFO,
            LogLevel::Warning => LevelFilter::WARN,
        }
    }
}

/// The process' log, on standard error.
#[derive(Clone)]
pub struct LogControl {
    filter: Handle<LevelFilter, Registry>,
    lines: LineSender,
    level: Arc<Mutex<LogLevel>>,
}

impl fmt::Debug for LogControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogControl").field("level", &self.level()).finish_non_exhaustive()
    }
}

impl LogControl {
    /// Installs the process' log, with its own writer thread.
    ///
    /// # Errors
    /// A log is already installed, or no thread can be created.
    pub fn install(format: LogFormat, level: LogLevel) -> io::Result<LogControl> {
        let (filter, handle) = reload::Layer::new(level.filter());
        let sender = LineSender::to(io::stderr())?;
        let layer = lines::layer().with_ansi(false).with_target(false).with_writer(sender.clone());
        let log = tracing_subscriber::registry().with(filter);
        let installed = match format {
            LogFormat::Text => log.with(layer).try_init(),
            LogFormat::Json => log.with(layer.json().flatten_event(true)).try_init(),
        };
        let control = LogControl { filter: handle, lines: sender, level: Arc::new(Mutex::new(level)) };
        installed.map(|()| control).map_err(io::Error::other)
    }

    /// Waits until all lines are written; at most a second, because standard error may be a pipe without a reader.
    pub fn flush(&self) {
        self.lines.flush();
    }

    /// Returns the current level.
    pub fn level(&self) -> LogLevel {
        *self.level.lock()
    }

    /// Sets the level.
    pub fn set(&self, level: LogLevel) {
        *self.level.lock() = level;
        // This fails only if the log is gone, and it lives as long as the process.
        let _ = self.filter.reload(level.filter());
    }
}

/// Rate limits for lines that clients cause.
#[derive(Default)]
pub(crate) struct Log {
    refused_clients: Throttle,
    failed_handshakes: Throttle,
    failed_logins: Throttle,
    slow_commands: Throttle,
    failures: Throttle,
    panics: Throttle,
    evictions: Throttle,
    scripts: Throttle,
}

impl Log {
    #[cold]
    pub(crate) fn client_refused(&self, addr: &dyn fmt::Display, why: &'static str) {
        if let Some(left_out) = self.refused_clients.pass() {
            tracing::warn!(%addr, why, left_out, "client refused");
        }
    }

    /// Starts with Redis' words, for which people search.
    #[cold]
    pub(crate) fn http_detected(&self, addr: &dyn fmt::Display) {
        if let Some(left_out) = self.refused_clients.pass() {
            tracing::warn!(
                %addr,
                left_out,
                "Possible SECURITY ATTACK detected. It looks like somebody is sending POST or Host: commands: a web page, \
                 by a browser on that host. Connection aborted."
            );
        }
    }

    /// Logs a failed TLS handshake of a client connected by `way`. The text contains nothing that the client chooses
    /// freely.
    #[cold]
    pub(crate) fn handshake_failed(&self, way: &'static str, addr: &dyn fmt::Display, why: &dyn fmt::Display) {
        if let Some(left_out) = self.failed_handshakes.pass() {
            tracing::warn!(way, %addr, %why, left_out, "TLS handshake failed");
        }
    }

    /// Logs a failed login of a client connected by `way`: a wrong password or an unknown user.
    #[cold]
    pub(crate) fn auth_failed(&self, way: &'static str, addr: &dyn fmt::Display, user: Option<&str>) {
        if let Some(left_out) = self.failed_logins.pass() {
            tracing::warn!(way, %addr, user = user.unwrap_or("(unknown)"), left_out, "authentication failed");
        }
    }

    /// Logs that a client was disconnected so that held-back clients can proceed.
    #[cold]
    pub(crate) fn evicted(&self, client: u64) {
        if let Some(left_out) = self.evictions.pass() {
            tracing::warn!(
                client,
                left_out,
                "client disconnected: it does not read its replies, and other clients wait for the memory they use"
            );
        }
    }

    #[cold]
    pub(crate) fn slow(&self, (command, took): (&'static str, Duration)) {
        if let Some(left_out) = self.slow_commands.pass() {
            tracing::warn!(command, took_us = took.as_micros() as u64, left_out, "slow command");
        }
    }

    /// Logs a message of a script.
    pub(crate) fn of_script(&self, level: Level, message: &str) {
        let Some(left_out) = self.scripts.pass() else { return };
        match level {
            Level::Debug => tracing::trace!(left_out, "script: {message}"),
            Level::Verbose => tracing::debug!(left_out, "script: {message}"),
            Level::Notice => tracing::info!(left_out, "script: {message}"),
            Level::Warning => tracing::warn!(left_out, "script: {message}"),
        }
    }

    /// Logs a caught panic. The panic message is omitted, because it may contain data of a client.
    #[cold]
    pub(crate) fn panicked(&self, command: &str, place: &str, calls: &str) {
        if let Some(left_out) = self.panics.pass() {
            tracing::error!(command, place, calls, left_out, "request panicked; its client was disconnected");
        }
    }

    /// Logs commands that failed because of the store or its disk.
    #[cold]
    pub(crate) fn refused(&self, refusal: &Refusal) {
        let Refusal::Store(error) = refusal else { return };
        if !matches!(error, Error::Medium(_) | Error::Corrupt { .. } | Error::NoMemory { .. }) {
            return;
        }
        if let Some(left_out) = self.failures.pass() {
            let is_poisoned = matches!(error, Error::Medium(MediumError::Poisoned { .. }));
            tracing::error!(%error, is_poisoned, left_out, "command failed: error of the store");
        }
    }
}

/// A rate limit of lines per second.
#[derive(Default)]
struct Throttle(Mutex<Window>);

#[derive(Default)]
struct Window {
    began: Option<Instant>,
    passed: u32,
    left_out: u64,
}

impl Throttle {
    /// Returns `None` if the line must be dropped, otherwise the number of lines dropped before it.
    fn pass(&self) -> Option<u64> {
        self.pass_at(Instant::now())
    }

    fn pass_at(&self, now: Instant) -> Option<u64> {
        let mut window = self.0.lock();
        if window.began.is_none_or(|began| now.duration_since(began) >= Duration::from_secs(1)) {
            (window.began, window.passed) = (Some(now), 0);
        }
        if window.passed == LINE_COUNT_MAX {
            window.left_out += 1;
            return None;
        }
        window.passed += 1;
        Some(std::mem::take(&mut window.left_out))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// A writer that counts lines, and blocks while its mutex is locked.
    struct Counting(Arc<(Mutex<()>, AtomicUsize)>);

    impl Write for Counting {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            let _may = self.0.0.lock();
            self.0.1.fetch_add(1, Ordering::Relaxed);
            Ok(line.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn flush_waits_for_lines_before_it() {
        const COUNT: usize = 1_000;
        let counted = Arc::new((Mutex::new(()), AtomicUsize::new(0)));
        let (_layer, filter) = reload::Layer::new(LevelFilter::INFO);
        let lines = LineSender::to(Counting(Arc::clone(&counted))).expect("a thread");
        let control = LogControl { filter, lines: lines.clone(), level: Arc::default() };
        let before = counted.0.lock();
        for mut line in vec![lines; COUNT] {
            line.write_all(b"a line\n").expect("it is handed over");
        }
        drop(before);
        control.flush();
        assert_eq!(counted.1.load(Ordering::Relaxed), COUNT);
    }

    #[test]
    fn lines_are_limited_and_drops_counted() {
        let (throttle, now) = (Throttle::default(), Instant::now());
        assert!((0..LINE_COUNT_MAX).all(|_| throttle.pass_at(now) == Some(0)));
        assert_eq!([throttle.pass_at(now), throttle.pass_at(now)], [None, None]);
        let later = now + Duration::from_secs(1);
        assert_eq!([throttle.pass_at(later), throttle.pass_at(later)], [Some(2), Some(0)]);
    }

    #[test]
    fn levels_have_redis_names() {
        for level in LogLevel::ALL {
            assert_eq!(LogLevel::of(level.name()), Some(level));
        }
        assert_eq!(LogLevel::of("loud"), None);
    }
}
