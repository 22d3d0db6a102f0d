//! `--verify`: what is compared before a read believes it.

use clap::{Args, ValueEnum};
use hikv::Verify;
use server::Parameters;

use crate::failure::Failure;
use crate::given;

/// What is compared; each level has those before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Level {
    /// Only what costs nothing: a damaged value is given as it is
    Nothing,
    /// The checksum of each value that is given
    Values,
    /// Also, where a key is not there, whether damage to the index hides it
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

/// The option, as commands take it that read at the level of the library.
#[derive(Args)]
pub(crate) struct Verified {
    /// What reads compare before they believe it; by default values
    #[arg(long, value_enum, value_name = "LEVEL")]
    verify: Option<Level>,
}

impl Verified {
    /// The level.
    pub(crate) fn level(&self) -> Verify {
        self.verify.map_or(Verify::default(), Verify::from)
    }

    /// Gives the option to a server's parameters.
    pub(crate) fn give(&self, parameters: &mut Parameters) -> Result<(), Failure> {
        given::choice(parameters, "verify-reads", self.verify)
    }

    /// What a server's parameters ask for.
    pub(crate) fn of(parameters: &Parameters) -> Verified {
        Verified { verify: parameters.value("verify-reads").and_then(|name| Level::from_str(name, false).ok()) }
    }
}
