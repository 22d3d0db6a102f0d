//! Parameters that can be changed while the server runs (`CONFIG`).

mod parameters;
pub(super) mod sizes;

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use resp::Limits;

pub(crate) use parameters::{Effect, Kind, PARAMETERS, Parameter, by_name};

use crate::administration::output_limits::{Limit, OutputLimits, SharedLimit};
use crate::observers::events::{self, Class};
use crate::{LogControl, LogLevel};

/// Completes a value of several parts: parts that are not given keep their value from `before`.
pub(crate) fn completed(index: usize, before: &str, value: String) -> String {
    if PARAMETERS[index].effect != Effect::OutputLimits {
        return value;
    }
    let before = OutputLimits::default().with(before).unwrap_or_default();
    before.with(&value).unwrap_or(before).to_string()
}

/// The values as texts; the frequently used ones also as numbers.
pub(crate) struct Settings {
    values: Mutex<Vec<String>>,
    clients_max: AtomicUsize,
    memory_bytes_max: AtomicU64,
    backlog_bytes_max: AtomicU64,
    bulk_bytes_max: AtomicUsize,
    is_protected: AtomicBool,
    notified_classes: AtomicU32,
    busy_ms_min: AtomicU64,
    slow_us_min: AtomicI64,
    slow_count_max: AtomicUsize,
    latency_ms_min: AtomicU64,
    tracks_latency: AtomicBool,
    log: Option<LogControl>,
    reply_limit: SharedLimit,
    message_limit: SharedLimit,
    idle_seconds_max: AtomicU64,
    keep_alive_seconds: AtomicU32,
    tracked_key_count_max: AtomicUsize,
}

impl Settings {
    /// Creates settings with these values by parameter index, and defaults for the others; `loglevel` acts on `log`.
    pub(crate) fn of(values: Vec<(usize, String)>, log: Option<LogControl>) -> Settings {
        let settings = Settings {
            values: Mutex::new(PARAMETERS.iter().map(|parameter| parameter.first.to_owned()).collect()),
            clients_max: AtomicUsize::new(0),
            memory_bytes_max: AtomicU64::new(0),
            backlog_bytes_max: AtomicU64::new(0),
            bulk_bytes_max: AtomicUsize::new(0),
            is_protected: AtomicBool::new(true),
            notified_classes: AtomicU32::new(0),
            busy_ms_min: AtomicU64::new(0),
            slow_us_min: AtomicI64::new(0),
            slow_count_max: AtomicUsize::new(0),
            latency_ms_min: AtomicU64::new(0),
            tracks_latency: AtomicBool::new(true),
            log,
            reply_limit: SharedLimit::default(),
            message_limit: SharedLimit::default(),
            idle_seconds_max: AtomicU64::new(0),
            keep_alive_seconds: AtomicU32::new(0),
            tracked_key_count_max: AtomicUsize::new(0),
        };
        values.into_iter().for_each(|(index, value)| settings.record(index, value));
        (0..PARAMETERS.len()).for_each(|index| settings.apply_effect(index, &settings.value(index)));
        settings
    }

    /// Records a `value` that is already in effect.
    pub(crate) fn show(&self, name: &str, value: String) {
        self.values.lock()[by_name(name.as_bytes()).expect("a known parameter")] = value;
    }

    /// Returns the value of an existing parameter.
    pub(crate) fn named(&self, name: &str) -> String {
        self.value(by_name(name.as_bytes()).expect("a known parameter"))
    }

    /// Returns the value of parameter number `index`.
    pub(crate) fn value(&self, index: usize) -> String {
        self.values.lock()[index].clone()
    }

    /// Sets an existing parameter to a value in canonical form.
    pub(crate) fn set(&self, name: &str, value: String) {
        self.put(by_name(name.as_bytes()).expect("a known parameter"), value);
    }

    /// Sets a parameter to a value in canonical form. A password is not stored.
    pub(crate) fn put(&self, index: usize, value: String) {
        let value = completed(index, &self.value(index), value);
        self.apply_effect(index, &value);
        if PARAMETERS[index].effect != Effect::Password {
            self.record(index, value);
        }
    }

    /// Records a value under both names of its parameter.
    fn record(&self, index: usize, value: String) {
        let mut values = self.values.lock();
        if let Some(other) = parameters::other_name(index) {
            values[other].clone_from(&value);
        }
        values[index] = value;
    }

    fn apply_effect(&self, index: usize, value: &str) {
        let number = value.parse::<i64>().unwrap_or(0);
        match PARAMETERS[index].effect {
            Effect::Clients => self.clients_max.store(number as usize, Ordering::Relaxed),
            Effect::Memory => self.memory_bytes_max.store(value.parse().unwrap_or(0), Ordering::Relaxed),
            Effect::Backlogs => self.backlog_bytes_max.store(value.parse().unwrap_or(0), Ordering::Relaxed),
            Effect::BulkBytes => self.bulk_bytes_max.store(number as usize, Ordering::Relaxed),
            Effect::Protection => self.is_protected.store(value == "yes", Ordering::Relaxed),
            Effect::Events => {
                let classes = events::parse(value.as_bytes()).unwrap_or(0);
                self.notified_classes.store(classes, Ordering::Relaxed);
            }
            Effect::BusyTime => self.busy_ms_min.store(number as u64, Ordering::Relaxed),
            Effect::SlowTime => self.slow_us_min.store(number, Ordering::Relaxed),
            Effect::SlowCount => self.slow_count_max.store(number as usize, Ordering::Relaxed),
            Effect::LatencyTime => self.latency_ms_min.store(number as u64, Ordering::Relaxed),
            Effect::LatencyTracking => self.tracks_latency.store(value == "yes", Ordering::Relaxed),
            Effect::LogLevel => self.set_log_level(value),
            Effect::OutputLimits => {
                let limits = OutputLimits::default().with(value).unwrap_or_default();
                self.reply_limit.store(limits.normal);
                self.message_limit.store(limits.pubsub);
            }
            Effect::IdleTime => self.idle_seconds_max.store(number as u64, Ordering::Relaxed),
            Effect::KeepAlive => self.keep_alive_seconds.store(number as u32, Ordering::Relaxed),
            Effect::TrackedKeys => self.tracked_key_count_max.store(number as usize, Ordering::Relaxed),
            Effect::None | Effect::Fixed | Effect::Constant | Effect::Password | Effect::Tls => {}
        }
    }

    fn set_log_level(&self, name: &str) {
        if let (Some(log), Some(level)) = (&self.log, LogLevel::of(name)) {
            log.set(level);
        }
    }

    /// Returns the maximum number of clients.
    pub(crate) fn clients_max(&self) -> usize {
        self.clients_max.load(Ordering::Relaxed)
    }

    /// Returns the maximum bytes of items and index; 0 means no limit.
    #[inline]
    pub(crate) fn memory_bytes_max(&self) -> u64 {
        self.memory_bytes_max.load(Ordering::Relaxed)
    }

    /// Returns the maximum bytes of all clients' backlogs together; 0 means no limit.
    #[inline]
    pub(crate) fn backlog_bytes_max(&self) -> u64 {
        self.backlog_bytes_max.load(Ordering::Relaxed)
    }

    /// Returns the maximum length in bytes of a request's argument, and of a value that a command creates.
    pub(crate) fn bulk_bytes_max(&self) -> usize {
        self.bulk_bytes_max.load(Ordering::Relaxed)
    }

    /// Returns whether protected mode is on: remote clients are refused while no password is required.
    pub(crate) fn is_protected(&self) -> bool {
        self.is_protected.load(Ordering::Relaxed)
    }

    /// Returns the request limits of a new connection.
    pub(crate) fn limits(&self) -> Limits {
        Limits::with_bulk_bytes_max(self.bulk_bytes_max())
    }

    /// Returns the output limit of a client that receives only replies.
    #[inline]
    pub(crate) fn reply_limit(&self) -> Limit {
        self.reply_limit.load()
    }

    /// Returns the output limit of a client that receives messages.
    pub(crate) fn message_limit(&self) -> Limit {
        self.message_limit.load()
    }

    /// Returns the seconds without a request after which a client is disconnected; 0 means never.
    #[inline]
    pub(crate) fn idle_seconds_max(&self) -> u64 {
        self.idle_seconds_max.load(Ordering::Relaxed)
    }

    /// Returns the TCP keepalive interval in seconds; 0 means off.
    pub(crate) fn keep_alive_seconds(&self) -> u32 {
        self.keep_alive_seconds.load(Ordering::Relaxed)
    }

    /// Returns the maximum number of tracked keys; above it some are invalidated.
    pub(crate) fn tracked_key_count_max(&self) -> usize {
        match self.tracked_key_count_max.load(Ordering::Relaxed) {
            0 => usize::MAX,
            count => count,
        }
    }

    #[inline]
    pub(crate) fn notified_classes(&self) -> Class {
        self.notified_classes.load(Ordering::Relaxed)
    }

    /// Returns the duration in milliseconds from which a script makes other clients' commands fail; if 0, none does.
    pub(crate) fn busy_ms_min(&self) -> u64 {
        self.busy_ms_min.load(Ordering::Relaxed)
    }

    /// Returns the duration in microseconds from which a request is slow; if negative, none is.
    #[inline]
    pub(crate) fn slow_us_min(&self) -> i64 {
        self.slow_us_min.load(Ordering::Relaxed)
    }

    /// Returns whether a request of this duration is recorded anywhere.
    #[inline]
    pub(crate) fn is_slow(&self, took: Duration) -> bool {
        let (slow_us, latency_ms) = (self.slow_us_min(), self.latency_ms_min());
        slow_us >= 0 && took.as_micros() >= slow_us as u128
            || latency_ms > 0 && took.as_millis() >= u128::from(latency_ms)
    }

    pub(crate) fn slow_count_max(&self) -> usize {
        self.slow_count_max.load(Ordering::Relaxed)
    }

    /// Returns the duration in milliseconds from which a latency is recorded; if 0, none is.
    #[inline]
    pub(crate) fn latency_ms_min(&self) -> u64 {
        self.latency_ms_min.load(Ordering::Relaxed)
    }

    /// Returns whether `INFO` shows command latencies; they are counted in any case.
    pub(crate) fn tracks_latency(&self) -> bool {
        self.tracks_latency.load(Ordering::Relaxed)
    }
}
