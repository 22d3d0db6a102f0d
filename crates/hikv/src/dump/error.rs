//! Errors of reading a dump.

use std::{fmt, io};

/// An error of reading a dump. Offsets count bytes from the start of the dump.
#[derive(Debug)]
#[non_exhaustive]
pub enum DumpError {
    /// The input does not begin with a dump's header.
    NotADump,
    /// A newer program wrote the dump.
    Newer {
        /// The dump's version.
        found: u16,
        /// The newest version that this program reads.
        supported: u16,
    },
    /// The dump has feature flags that this program does not know.
    UnknownFlags {
        /// The unknown flags.
        flags: u32,
    },
    /// The dump's bytes differ from those written.
    Damaged {
        /// The start of the damaged part.
        offset: u64,
        /// The damage.
        what: &'static str,
    },
    /// The dump ends early.
    Truncated {
        /// Its length in bytes.
        offset: u64,
    },
    /// The input failed.
    Input {
        /// The number of bytes read before.
        offset: u64,
        /// The input's error.
        source: io::Error,
    },
}

impl fmt::Display for DumpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DumpError::NotADump => f.write_str("this is no dump of hikv: its first bytes differ"),
            DumpError::Newer { found, supported } => {
                write!(f, "the dump has version {found}; this program reads versions up to {supported}")
            }
            DumpError::UnknownFlags { flags } => {
                write!(f, "the dump has flags {flags:#x}, which this program does not know; use a newer version")
            }
            DumpError::Damaged { offset, what } => write!(f, "the dump is damaged at offset {offset}: {what}"),
            DumpError::Truncated { offset } => write!(f, "the dump is cut off at offset {offset}: its end is missing"),
            DumpError::Input { offset, source } => {
                write!(f, "cannot read the dump beyond offset {offset}: {source}")
            }
        }
    }
}

impl std::error::Error for DumpError {
    /// Returns the source of the input's error, because `Display` includes that error's own text.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            DumpError::Input { source, .. } => source.source(),
            _ => None,
        }
    }
}
