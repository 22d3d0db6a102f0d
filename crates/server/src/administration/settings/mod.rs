//! What can be changed while the server runs (`CONFIG`).

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

/// What is not said of a value that has several parts stays as it was in `before`.
pub(crate) fn completed(index: usize, before: &str, value: String) -> String {
    if PARAMETERS[index].effect != Effect::OutputLimits {
        return value;
    }
    let before = OutputLimits::default().with(before).unwrap_or_default();
    before.with(&value).unwrap_or(before).to_string()
}

/// Values as texts, and those that are needed often as numbers.
pub(crate) struct Settings {
    values: Mutex<Vec<String>>,
    clients_max: AtomicUsize,
    memory_bytes_max: AtomicU64,
    backlog_bytes_max: AtomicU64,
    bulk_bytes_max: AtomicUsize,
    is_protected: AtomicBool,
    notified_classes: AtomicU32,
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
    /// With these values, by the numbers of parameters, and all others as they are at first; `log` is what `loglevel` acts on.
    pub(crate) fn of(values: Vec<(usize, String)>, log: Option<LogControl>) -> Settings {
        let settings = Settings {
            values: Mutex::new(PARAMETERS.iter().map(|parameter| parameter.first.to_owned()).collect()),
            clients_max: AtomicUsize::new(0),
            memory_bytes_max: AtomicU64::new(0),
            backlog_bytes_max: AtomicU64::new(0),
            bulk_bytes_max: AtomicUsize::new(0),
            is_protected: AtomicBool::new(true),
            notified_classes: AtomicU32::new(0),
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
        values.into_iter().for_each(|(index, value)| settings.values.lock()[index] = value);
        (0..PARAMETERS.len()).for_each(|index| settings.take_effect(index, &settings.value(index)));
        settings
    }

    /// Shows `value`, which is so already.
    pub(crate) fn show(&self, name: &str, value: String) {
        self.values.lock()[by_name(name.as_bytes()).expect("a known parameter")] = value;
    }

    /// The value of the parameter with this name, which is one.
    pub(crate) fn named(&self, name: &str) -> String {
        self.value(by_name(name.as_bytes()).expect("a known parameter"))
    }

    /// The value of parameter number `index`.
    pub(crate) fn value(&self, index: usize) -> String {
        self.values.lock()[index].clone()
    }

    /// Gives the parameter with this name, which is one, a value in the form in which it is shown.
    pub(crate) fn set(&self, name: &str, value: String) {
        self.put(by_name(name.as_bytes()).expect("a known parameter"), value);
    }

    /// Gives it a value in the form in which it is shown. A password is not kept.
    pub(crate) fn put(&self, index: usize, value: String) {
        let value = completed(index, &self.value(index), value);
        self.take_effect(index, &value);
        if PARAMETERS[index].effect != Effect::Password {
            self.values.lock()[index] = value;
        }
    }

    fn take_effect(&self, index: usize, value: &str) {
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

    /// The most clients at a time.
    pub(crate) fn clients_max(&self) -> usize {
        self.clients_max.load(Ordering::Relaxed)
    }

    /// What items and index may occupy, in bytes; 0 for any.
    #[inline]
    pub(crate) fn memory_bytes_max(&self) -> u64 {
        self.memory_bytes_max.load(Ordering::Relaxed)
    }

    /// What the unread replies of all clients may take together, beyond what each may have; 0 for any.
    #[inline]
    pub(crate) fn backlog_bytes_max(&self) -> u64 {
        self.backlog_bytes_max.load(Ordering::Relaxed)
    }

    /// The longest argument of a request, and the longest value that a command may make, in bytes.
    pub(crate) fn bulk_bytes_max(&self) -> usize {
        self.bulk_bytes_max.load(Ordering::Relaxed)
    }

    /// Whether clients from elsewhere are turned away while nobody needs a password.
    pub(crate) fn is_protected(&self) -> bool {
        self.is_protected.load(Ordering::Relaxed)
    }

    /// What a new connection may send.
    pub(crate) fn limits(&self) -> Limits {
        Limits::with_bulk_bytes_max(self.bulk_bytes_max())
    }

    /// What a client that gets replies alone may leave unread.
    #[inline]
    pub(crate) fn reply_limit(&self) -> Limit {
        self.reply_limit.load()
    }

    /// What a client that gets messages may leave unread.
    pub(crate) fn message_limit(&self) -> Limit {
        self.message_limit.load()
    }

    /// After how many seconds without a request a client is closed; 0 for never.
    #[inline]
    pub(crate) fn idle_seconds_max(&self) -> u64 {
        self.idle_seconds_max.load(Ordering::Relaxed)
    }

    /// How often a silent client is asked whether it is there, in seconds; 0 for never.
    pub(crate) fn keep_alive_seconds(&self) -> u32 {
        self.keep_alive_seconds.load(Ordering::Relaxed)
    }

    /// Keys that clients have read and want to know the changes of, before some are taken for changed.
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

    /// From how many microseconds on a request is slow; none is, if negative.
    #[inline]
    pub(crate) fn slow_us_min(&self) -> i64 {
        self.slow_us_min.load(Ordering::Relaxed)
    }

    /// Whether a request that took so long is noted anywhere.
    #[inline]
    pub(crate) fn is_slow(&self, took: Duration) -> bool {
        let (slow_us, latency_ms) = (self.slow_us_min(), self.latency_ms_min());
        slow_us >= 0 && took.as_micros() >= slow_us as u128
            || latency_ms > 0 && took.as_millis() >= u128::from(latency_ms)
    }

    pub(crate) fn slow_count_max(&self) -> usize {
        self.slow_count_max.load(Ordering::Relaxed)
    }

    /// From how many milliseconds on a latency is noted; none is, if 0.
    #[inline]
    pub(crate) fn latency_ms_min(&self) -> u64 {
        self.latency_ms_min.load(Ordering::Relaxed)
    }

    /// Whether `INFO` tells of commands' latencies; they are counted in any case.
    pub(crate) fn tracks_latency(&self) -> bool {
        self.tracks_latency.load(Ordering::Relaxed)
    }
}
