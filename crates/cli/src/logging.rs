//! `--log-level` and `--log-format`: what a server writes to standard error.

use clap::{Args, ValueEnum};
use server::{LogControl, LogFormat, LogLevel, Parameters};

use crate::failure::Failure;
use crate::given;

/// How much is logged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Level {
    /// Everything
    Debug,
    /// Clients that come and go as well
    Verbose,
    /// Start, recovery, health, the end
    Notice,
    /// What an operator should look at
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
    /// How much is logged to standard error; by default notice
    #[arg(long, value_enum, value_name = "LEVEL", env = "HIKV_LOG_LEVEL")]
    log_level: Option<Level>,
    /// How a line of the log looks; by default text
    #[arg(long, value_enum, value_name = "FORMAT", env = "HIKV_LOG_FORMAT")]
    log_format: Option<Format>,
}

impl Logging {
    /// Gives the options to the parameters.
    pub(crate) fn give(&self, parameters: &mut Parameters) -> Result<(), Failure> {
        given::choice(parameters, "loglevel", self.log_level)?;
        given::choice(parameters, "log-format", self.log_format)
    }
}

/// What the store warns of, for commands that write no log.
pub(crate) fn of_warnings() -> Option<LogControl> {
    LogControl::install(LogFormat::Text, LogLevel::Warning).ok()
}

/// Makes the process' log as the parameters say.
pub(crate) fn install(parameters: &Parameters) -> Result<LogControl, Failure> {
    let level = parameters.value("loglevel").and_then(LogLevel::of).unwrap_or_default();
    let format = match parameters.value("log-format") {
        Some("json") => LogFormat::Json,
        _ => LogFormat::Text,
    };
    LogControl::install(format, level).map_err(|error| Failure::at("the log", error))
}
