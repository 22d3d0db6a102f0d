//! Figures that only one engine has.

/// The kind of a figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FigureKind {
    /// A number at the moment.
    Gauge,
    /// A share at the moment, 0 to 1.
    Ratio,
    /// A count since the store was opened.
    Counter,
}

/// A figure that only one engine has.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Figure {
    /// The name in stats and metrics, in words joined by underscores.
    pub name: &'static str,
    /// A description: a sentence without a full stop.
    pub help: &'static str,
    /// The kind.
    pub kind: FigureKind,
    /// The value.
    pub value: f64,
}

impl Figure {
    /// Returns a share at the moment, 0 to 1.
    #[must_use]
    pub const fn ratio(name: &'static str, help: &'static str, value: f64) -> Figure {
        Figure { name, help, kind: FigureKind::Ratio, value }
    }

    /// Returns true for a share.
    #[must_use]
    pub fn is_ratio(&self) -> bool {
        self.kind == FigureKind::Ratio
    }

    /// Returns a number at the moment.
    #[must_use]
    pub const fn gauge(name: &'static str, help: &'static str, value: f64) -> Figure {
        Figure { name, help, kind: FigureKind::Gauge, value }
    }

    /// Returns a count since the store was opened.
    #[must_use]
    pub const fn counter(name: &'static str, help: &'static str, value: f64) -> Figure {
        Figure { name, help, kind: FigureKind::Counter, value }
    }

    /// Returns the figures of a cache of items in DRAM: the share of lookups that the cache answered, the numbers of
    /// hits, misses and evicted items, and the bytes of the cached items.
    #[must_use]
    pub const fn of_cache(hit_ratio: f64, hits: u64, misses: u64, evicted: u64, bytes: u64) -> [Figure; 5] {
        [
            Figure::ratio("cache_hit_ratio", "Share of lookups that the item cache answered, 0 to 1", hit_ratio),
            Figure::counter("cache_hit_count", "Lookups since open that the item cache answered", hits as f64),
            Figure::counter("cache_miss_count", "Lookups since open that the item cache did not answer", misses as f64),
            Figure::counter("cache_evicted_count", "Items evicted from the item cache since open", evicted as f64),
            Figure::gauge("cache_bytes", "Bytes of items in the item cache", bytes as f64),
        ]
    }
}
