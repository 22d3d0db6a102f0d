//! The highest latencies of commands per second, from `latency-monitor-threshold` on.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;

use crate::administration::settings::Settings;

/// Samples per event, as in Redis.
const SAMPLE_COUNT_MAX: usize = 160;

/// The highest latency of one second.
#[derive(Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) unix_seconds: u64,
    pub(crate) ms: u64,
}

#[derive(Clone, Default)]
pub(crate) struct Event {
    pub(crate) samples: VecDeque<Sample>,
    pub(crate) worst_ms: u64,
}

#[derive(Default)]
pub(crate) struct Latency {
    events: Mutex<BTreeMap<&'static str, Event>>,
}

impl Latency {
    #[inline]
    pub(crate) fn note(&self, settings: &Settings, event: &'static str, took: Duration) {
        let limit_ms = settings.latency_ms_min();
        if limit_ms > 0 && took.as_millis() >= u128::from(limit_ms) {
            self.add(event, took.as_millis() as u64);
        }
    }

    #[cold]
    fn add(&self, name: &'static str, ms: u64) {
        let unix_seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let mut events = self.events.lock();
        let event = events.entry(name).or_default();
        event.worst_ms = event.worst_ms.max(ms);
        match event.samples.back_mut().filter(|sample| sample.unix_seconds == unix_seconds) {
            Some(sample) => sample.ms = sample.ms.max(ms),
            None => event.samples.push_back(Sample { unix_seconds, ms }),
        }
        while event.samples.len() > SAMPLE_COUNT_MAX {
            event.samples.pop_front();
        }
    }

    pub(crate) fn all(&self) -> Vec<(&'static str, Event)> {
        self.events.lock().iter().map(|(name, event)| (*name, event.clone())).collect()
    }

    pub(crate) fn event(&self, name: &[u8]) -> Option<Event> {
        let events = self.events.lock();
        events.iter().find(|(known, _)| known.as_bytes() == name).map(|(_, event)| event.clone())
    }

    /// Removes the named events, or all, and returns their number.
    pub(crate) fn forget(&self, names: &[&[u8]]) -> usize {
        let mut events = self.events.lock();
        let count = events.len();
        events.retain(|known, _| !names.is_empty() && !names.contains(&known.as_bytes()));
        count - events.len()
    }
}
