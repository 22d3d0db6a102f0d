//! Figures that an engine alone has.

/// What a figure counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FigureKind {
    /// How many there are at the moment.
    Gauge,
    /// A part of a whole at the moment, 0 to 1.
    Ratio,
    /// What has happened since the store was opened.
    Counter,
}

/// One figure of an engine's own.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Figure {
    /// Its name in stats and metrics, in words joined by underscores.
    pub name: &'static str,
    /// What it tells, in a sentence without its stop.
    pub help: &'static str,
    /// What it counts.
    pub kind: FigureKind,
    /// Its value.
    pub value: f64,
}

impl Figure {
    /// A part of a whole at the moment, 0 to 1.
    #[must_use]
    pub const fn ratio(name: &'static str, help: &'static str, value: f64) -> Figure {
        Figure { name, help, kind: FigureKind::Ratio, value }
    }

    /// True if it is a part of a whole.
    #[must_use]
    pub fn is_ratio(&self) -> bool {
        self.kind == FigureKind::Ratio
    }

    /// How many there are at the moment.
    #[must_use]
    pub const fn gauge(name: &'static str, help: &'static str, value: f64) -> Figure {
        Figure { name, help, kind: FigureKind::Gauge, value }
    }

    /// What has happened since the store was opened.
    #[must_use]
    pub const fn counter(name: &'static str, help: &'static str, value: f64) -> Figure {
        Figure { name, help, kind: FigureKind::Counter, value }
    }

    /// Those of a cache of items in volatile memory: the part of searches that were answered there, how many were and were not,
    /// what was evicted, and the bytes of what is in the cache.
    #[must_use]
    pub const fn of_cache(hit_ratio: f64, hits: u64, misses: u64, evicted: u64, bytes: u64) -> [Figure; 5] {
        [
            Figure::ratio("cache_hit_ratio", "Searches that the cache of items answered, 0 to 1", hit_ratio),
            Figure::counter("cache_hit_count", "Searches since open that the cache of items answered", hits as f64),
            Figure::counter("cache_miss_count", "Searches since open that it did not answer", misses as f64),
            Figure::counter("cache_evicted_count", "Items since open that made room for others in it", evicted as f64),
            Figure::gauge("cache_bytes", "Bytes of items in the cache", bytes as f64),
        ]
    }
}
