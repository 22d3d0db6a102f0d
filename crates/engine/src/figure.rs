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
}
