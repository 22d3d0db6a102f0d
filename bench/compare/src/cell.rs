//! A cell of the comparison: a workload, a durability level, and a number of threads.

use std::fmt;
use std::num::NonZero;
use std::str::FromStr;

use bench::Workload;

/// The event that an acknowledged put survives.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Level {
    /// A loss of power: the put was synced before.
    Power,
    /// The death of the process: the kernel has the data, and no sync was waited for.
    Buffered,
}

/// A cell; see the module.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Cell {
    pub(crate) level: Level,
    pub(crate) workload: Workload,
    pub(crate) threads: NonZero<u16>,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Level::Power => "power",
            Level::Buffered => "buffered",
        })
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.level, self.workload.name(), self.threads)
    }
}

impl FromStr for Cell {
    type Err = String;

    fn from_str(text: &str) -> Result<Cell, String> {
        let unknown = || format!("invalid cell '{text}'; write LEVEL:WORKLOAD:THREADS, for example power:update:4");
        let mut parts = text.split(':');
        let (Some(level), Some(workload), Some(threads), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(unknown());
        };
        let level = [Level::Power, Level::Buffered].into_iter().find(|known| known.to_string() == level);
        let workload: Workload = workload.parse().map_err(|error| format!("{}: {error}", unknown()))?;
        if workload == Workload::Rebuild {
            return Err("cannot compare 'rebuild': only hikv builds an ordered index later".into());
        }
        Ok(Cell { level: level.ok_or_else(unknown)?, workload, threads: threads.parse().map_err(|_| unknown())? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cell_is_what_its_name_says() {
        for name in ["power:update:16", "buffered:get:1", "buffered:ycsb-e:2"] {
            assert_eq!(name.parse::<Cell>().unwrap().to_string(), name);
        }
        for name in ["power:get", "power:get:0", "power:put:1", "often:get:1", "power:get:1:2", ""] {
            assert!(name.parse::<Cell>().unwrap_err().contains(name));
        }
        assert!("power:rebuild:1".parse::<Cell>().is_err());
    }
}
