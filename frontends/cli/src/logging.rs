//! `--log-level` and `--log-format`: the log of a server on standard error.

use clap::{Args, ValueEnum};
use server::{LogControl, LogFormat, LogLevel, Parameters};

use crate::failure::Failure;
use crate::given;

/// The amount of logging.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Level {
    /// All messages
    Debug,
    /// Also clients that connect and disconnect
    Verbose,
    /// Start, recovery, health and shutdown
    Notice,
    /// Only problems that need an operator
    Warning,
}

/// The form of a log line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Format {
    /// Plain text
    Text,
    /// One JSON object per line
    Json,
}

/// The options.
#[derive(Args)]
pub(crate) struct Logging {
    /// Least level of messages to log on standard error [default: notice]
    #[arg(long, value_enum, value_name = "LEVEL", env = "HIKV_LOG_LEVEL")]
    log_level: Option<Level>,
    /// Form of a log line [default: text]
    #[arg(long, value_enum, value_name = "FORMAT", env = "HIKV_LOG_FORMAT")]
    log_format: Option<Format>,
}

impl Logging {
    /// Sets the options in a server's parameters.
    pub(crate) fn give(&self, parameters: &mut Parameters) -> Result<(), Failure> {
        given::choice(parameters, "loglevel", self.log_level)?;
        given::choice(parameters, "log-format", self.log_format)
    }
}

/// Logs warnings of the store, for commands without a log.
pub(crate) fn of_warnings() -> Option<LogControl> {
    LogControl::install(LogFormat::Text, LogLevel::Warning).ok()
}

/// Installs the log of the process, as configured in `parameters`.
pub(crate) fn install(parameters: &Parameters) -> Result<LogControl, Failure> {
    let level = parameters.value("loglevel").and_then(LogLevel::of).unwrap_or_default();
    let format = match parameters.value("log-format") {
        Some("json") => LogFormat::Json,
        _ => LogFormat::Text,
    };
    LogControl::install(format, level).map_err(|error| Failure::at("the log", error))
}
