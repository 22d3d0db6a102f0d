//! What is measured: an operation, at a level, by some threads.

use std::fmt;
use std::num::NonZero;
use std::str::FromStr;

/// What an acknowledged put survives.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Level {
    /// Loss of power: it was synced before.
    Power,
    /// The death of the process: the kernel has it, and nobody waited for a sync.
    Buffered,
}

/// What the threads do, with records chosen uniformly.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Operation {
    /// Replace a value. Each put is a transaction of its own, where a system has transactions.
    Put,
    /// Copy a value out.
    Get,
}

/// See the module.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Cell {
    pub(crate) level: Level,
    pub(crate) operation: Operation,
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

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Operation::Put => "put",
            Operation::Get => "get",
        })
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.level, self.operation, self.threads)
    }
}

impl FromStr for Cell {
    type Err = String;

    fn from_str(text: &str) -> Result<Cell, String> {
        let unknown = || format!("'{text}' is no cell: LEVEL:OPERATION:THREADS, such as power:put:4, is wanted");
        let mut parts = text.split(':');
        let (Some(level), Some(operation), Some(threads), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(unknown());
        };
        let level = [Level::Power, Level::Buffered].into_iter().find(|known| known.to_string() == level);
        let operation = [Operation::Put, Operation::Get].into_iter().find(|known| known.to_string() == operation);
        Ok(Cell {
            level: level.ok_or_else(unknown)?,
            operation: operation.ok_or_else(unknown)?,
            threads: threads.parse().map_err(|_| unknown())?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_what_its_name_says() {
        for name in ["power:put:16", "buffered:get:1"] {
            assert_eq!(name.parse::<Cell>().unwrap().to_string(), name);
        }
        for name in ["power:put", "power:put:0", "power:scan:1", "often:put:1", "power:put:1:2", ""] {
            assert!(name.parse::<Cell>().unwrap_err().contains(name));
        }
    }
}
