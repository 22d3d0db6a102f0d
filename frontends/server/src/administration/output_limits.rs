//! Limits on a client's unread output (`client-output-buffer-limit`).
//!
//! Replies are bounded in any case, because execution stops when the output is full. Published messages are bounded
//! only by these limits. So the class `pubsub` limits the unread messages of every client, also of monitors and
//! tracking clients, and the class `normal` its unread replies. The class `slave` is stored but has no effect.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::settings::sizes;

/// The limit of one class; 0 means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Limit {
    /// At this size the client is disconnected immediately.
    pub(crate) hard_bytes: u64,
    /// At this size the client is disconnected if it stays there for the given time.
    pub(crate) soft_bytes: u64,
    pub(crate) soft_seconds: u64,
}

/// A limit that may be changed while other threads read it; a reader may see a partial change.
#[derive(Default)]
pub(crate) struct SharedLimit([AtomicU64; 3]);

impl SharedLimit {
    pub(crate) fn store(&self, limit: Limit) {
        let numbers = [limit.hard_bytes, limit.soft_bytes, limit.soft_seconds];
        self.0.iter().zip(numbers).for_each(|(own, number)| own.store(number, Ordering::Relaxed));
    }

    #[inline]
    pub(crate) fn load(&self) -> Limit {
        let [hard_bytes, soft_bytes, soft_seconds] = self.0.each_ref().map(|own| own.load(Ordering::Relaxed));
        Limit { hard_bytes, soft_bytes, soft_seconds }
    }
}

/// The limits of all classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutputLimits {
    pub(crate) normal: Limit,
    slave: Limit,
    pub(crate) pubsub: Limit,
}

impl Default for OutputLimits {
    /// As in Redis, without those for replicas.
    fn default() -> OutputLimits {
        let pubsub = Limit { hard_bytes: 32 << 20, soft_bytes: 8 << 20, soft_seconds: 60 };
        OutputLimits { normal: Limit::default(), slave: Limit::default(), pubsub }
    }
}

impl fmt::Display for OutputLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let classes = [("normal", self.normal), (" slave", self.slave), (" pubsub", self.pubsub)];
        classes.iter().try_for_each(|(name, limit)| {
            write!(f, "{name} {} {} {}", limit.hard_bytes, limit.soft_bytes, limit.soft_seconds)
        })
    }
}

impl OutputLimits {
    /// Updates the classes named in `text`, each in the form `CLASS HARD SOFT SECONDS`; `None` if the text is invalid.
    pub(crate) fn with(mut self, text: &str) -> Option<OutputLimits> {
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        for class in words.chunks(4) {
            let [name, hard, soft, seconds] = class else { return None };
            let limit = match name.to_ascii_lowercase().as_str() {
                "normal" => &mut self.normal,
                "slave" | "replica" => &mut self.slave,
                "pubsub" => &mut self.pubsub,
                _ => return None,
            };
            *limit = Limit {
                hard_bytes: sizes::bytes_of(hard)?,
                soft_bytes: sizes::bytes_of(soft)?,
                soft_seconds: seconds.parse().ok()?,
            };
        }
        Some(self)
    }
}

/// The state of one client's unread output.
#[derive(Default)]
pub(crate) struct Unread {
    /// The first check at which it exceeded the soft limit.
    over_since: Option<Instant>,
}

impl Unread {
    /// Returns whether it exceeded the soft limit at the last check; the loop must then check again even without
    /// events.
    pub(crate) fn is_over(&self) -> bool {
        self.over_since.is_some()
    }

    /// Returns whether the client must be disconnected. Call it after bytes were added or sent, and periodically while
    /// the soft limit is exceeded.
    #[inline]
    pub(crate) fn is_too_much(&mut self, len_bytes: usize, limit: Limit) -> bool {
        let reaches = |bytes: u64| bytes > 0 && len_bytes as u64 >= bytes;
        if !reaches(limit.soft_bytes) {
            self.over_since = None;
            return reaches(limit.hard_bytes);
        }
        let since = *self.over_since.get_or_insert_with(Instant::now);
        reaches(limit.hard_bytes) || since.elapsed() >= Duration::from_secs(limit.soft_seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_changes_classes_that_it_names() {
        let limits = OutputLimits::default();
        assert_eq!(limits.with(&limits.to_string()), Some(limits));
        let changed = limits.with("normal 1kb 0 0 replica 3 2 1").unwrap();
        assert_eq!(changed.to_string(), "normal 1024 0 0 slave 3 2 1 pubsub 33554432 8388608 60");
        assert_eq!(changed.pubsub, limits.pubsub);
        for wrong in ["normal", "normal 1 2", "other 1 2 3", "normal x 0 0", "normal 0 0 -1"] {
            assert_eq!(limits.with(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn soft_limit_counts_from_first_excess() {
        let limit = Limit { hard_bytes: 100, soft_bytes: 10, soft_seconds: 3_600 };
        let mut unread = Unread::default();
        assert!(!unread.is_too_much(99, limit));
        assert!(unread.is_too_much(100, limit));
        assert!(!unread.is_too_much(9, limit) && unread.over_since.is_none());
        let at_once = Limit { soft_seconds: 0, ..limit };
        assert!(unread.is_too_much(10, at_once));
        assert!(!Unread::default().is_too_much(usize::MAX, Limit::default()));
    }
}
