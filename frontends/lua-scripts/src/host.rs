//! The server from the view of a script.

use resp::{Protocol, Request};

use crate::control::Stop;

/// Why a command was not executed.
#[derive(Debug, PartialEq, Eq)]
pub enum CallError {
    /// It was refused before execution; the error has a code and a sentence.
    Refused(Vec<u8>),
    /// The script must not continue, whatever it does about errors.
    Stopped(Stop),
}

/// The level of a log message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// For developers.
    Debug,
    /// Detailed.
    Verbose,
    /// Usual.
    Notice,
    /// Important.
    Warning,
}

/// Executes the commands of a script.
pub trait Host {
    /// Executes a command and appends its reply in this version of the protocol. An error of the executed command is
    /// such a reply.
    ///
    /// # Errors
    /// The command is refused before execution, or the script must end.
    fn call(&mut self, request: Request<'_>, protocol: Protocol, output: &mut Vec<u8>) -> Result<(), CallError>;

    /// Returns whether the script's user may execute a command; `None` if there is no such command.
    fn is_permitted(&mut self, request: Request<'_>) -> Option<bool>;

    /// Writes a message to the server's log.
    fn log(&mut self, level: Level, message: &[u8]);
}
