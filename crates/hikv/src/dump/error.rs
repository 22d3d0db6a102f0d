//! Why a dump cannot be read.

use std::{fmt, io};

/// Why a dump cannot be read, or not any further. Offsets count bytes from the start of the dump.
#[derive(Debug)]
#[non_exhaustive]
pub enum DumpError {
    /// The first bytes are not those of a dump.
    NotADump,
    /// A newer program wrote it.
    Newer {
        /// The version found.
        found: u16,
        /// The newest version that this program reads.
        supported: u16,
    },
    /// It uses additions that this program does not know.
    UnknownFlags {
        /// The flags that are not known.
        flags: u32,
    },
    /// Its bytes are not what was written.
    Damaged {
        /// Where what is damaged begins.
        offset: u64,
        /// What is wrong there.
        what: &'static str,
    },
    /// It ends before its end.
    Truncated {
        /// Its length.
        offset: u64,
    },
    /// The input failed.
    Input {
        /// How far it was read.
        offset: u64,
        /// Its error.
        source: io::Error,
    },
}

impl fmt::Display for DumpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DumpError::NotADump => f.write_str("this is no dump of hikv: its first bytes are something else"),
            DumpError::Newer { found, supported } => {
                write!(f, "the dump has version {found}; this program reads versions up to {supported}")
            }
            DumpError::UnknownFlags { flags } => {
                write!(f, "the dump uses additions that this program does not know: flags {flags:#x}")
            }
            DumpError::Damaged { offset, what } => write!(f, "the dump is damaged at offset {offset}: {what}"),
            DumpError::Truncated { offset } => write!(f, "the dump is cut off at offset {offset}: its end is missing"),
            DumpError::Input { offset, source } => {
                write!(f, "the dump cannot be read beyond offset {offset}: {source}")
            }
        }
    }
}

impl std::error::Error for DumpError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            DumpError::Input { source, .. } => Some(source),
            _ => None,
        }
    }
}
