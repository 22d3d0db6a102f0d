//! `--verify`: the data that reads compare with its checksum.

use clap::{Args, ValueEnum};
use hikv::Verify;
use server::Parameters;

use crate::failure::Failure;
use crate::given;

/// A level of verification, which includes the levels before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Level {
    /// Only the key; a damaged value is returned as it is
    Nothing,
    /// Every value that is returned completely
    Values,
    /// Also whether index damage hides a key that was not found
    Absence,
}

impl From<Level> for Verify {
    fn from(level: Level) -> Verify {
        match level {
            Level::Nothing => Verify::Nothing,
            Level::Values => Verify::Values,
            Level::Absence => Verify::Absence,
        }
    }
}

/// The option of commands whose default is the library's.
#[derive(Args)]
pub(crate) struct Verified {
    /// Data that reads compare with its checksum [default: values]
    #[arg(long, value_enum, value_name = "LEVEL")]
    verify: Option<Level>,
}

impl Verified {
    /// Returns the level.
    pub(crate) fn level(&self) -> Verify {
        self.verify.map_or(Verify::default(), Verify::from)
    }

    /// Sets the option in a server's parameters.
    pub(crate) fn give(&self, parameters: &mut Parameters) -> Result<(), Failure> {
        given::choice(parameters, "verify-reads", self.verify)
    }

    /// Reads the option from a server's parameters.
    pub(crate) fn of(parameters: &Parameters) -> Verified {
        Verified { verify: parameters.value("verify-reads").and_then(|name| Level::from_str(name, false).ok()) }
    }
}
