//! `--log-level` and `--log-format`: what a server writes to standard error.

use clap::{Args, ValueEnum};
use server::{LogControl, LogFormat, LogLevel};

use crate::failure::Failure;

/// How much is logged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Level {
    /// Everything
    Debug,
    /// Clients that come and go as well
    Verbose,
    /// Start, recovery, health, the end
    Notice,
    /// What somebody should look at
    Warning,
}

/// How a line looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// An object a line
    Json,
}

/// The options, as a command takes them.
#[derive(Args)]
pub(crate) struct Logging {
    /// How much is logged to standard error
    #[arg(long, value_enum, value_name = "LEVEL", env = "HIKV_LOG_LEVEL", default_value = "notice")]
    log_level: Level,
    /// How a line of the log looks
    #[arg(long, value_enum, value_name = "FORMAT", env = "HIKV_LOG_FORMAT", default_value = "text")]
    log_format: Format,
}

impl Logging {
    /// Makes the process' log so.
    pub(crate) fn install(&self) -> Result<LogControl, Failure> {
        let level = match self.log_level {
            Level::Debug => LogLevel::Debug,
            Level::Verbose => LogLevel::Verbose,
            Level::Notice => LogLevel::Notice,
            Level::Warning => LogLevel::Warning,
        };
        let format = match self.log_format {
            Format::Text => LogFormat::Text,
            Format::Json => LogFormat::Json,
        };
        LogControl::install(format, level).ok_or_else(|| Failure::at("the log", "there is one already"))
    }
}
