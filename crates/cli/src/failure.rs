//! What a command ends with when it does not simply succeed: one line on stderr, and an exit code.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use hikv::OpenError;

use crate::serving;

/// All exit codes, as `--help` and the manual (docs/cli.md) list them.
pub(crate) const EXIT_CODES: [(&str, &str); 4] = [
    ("0", "done; also when the reader of the output went away"),
    ("1", "the answer is no: no such key, a condition fails, the store is damaged, results are wrong"),
    ("2", "an error: the last line on stderr says which, with the path and the value"),
    ("129, 130, 143", "ended by SIGHUP, SIGINT or SIGTERM, with the store closed"),
];

/// Not found, or damaged.
const NEGATIVE_CODE: u8 = 1;
/// Wrong arguments or failed operations; `clap` uses it as well.
const ERROR_CODE: u8 = 2;
/// Added to the number of the signal that ended a command, as shells do.
const SIGNAL_CODE: u8 = 128;

/// Why a command did not do all it was asked to.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The answer is no: a key is not there, the store is damaged.
    Negative(String),
    /// Something failed.
    Error(String),
    /// Ended by a signal, with everything closed.
    Interrupted {
        /// The signal's number.
        signal: u8,
        /// How far the command came.
        done: String,
    },
    /// Nobody reads our output any more, which is no fault of ours.
    OutputClosed,
}

impl Failure {
    /// An error about the file, store or address `subject`.
    pub(crate) fn at(subject: impl Display, error: impl Display) -> Failure {
        Failure::Error(format!("{subject}: {error}"))
    }

    /// As [`Failure::at`], for a path.
    pub(crate) fn at_path<E: Display>(path: &Path) -> impl FnOnce(E) -> Failure {
        move |error| Failure::at(path.display(), error)
    }

    /// The signals could not be caught.
    pub(crate) fn at_signals(error: io::Error) -> Failure {
        Failure::at("signal handlers", error)
    }

    /// Writing to `subject` failed.
    pub(crate) fn output(subject: impl Display) -> impl FnOnce(io::Error) -> Failure {
        move |error| match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::OutputClosed,
            _ => Failure::at(subject, error),
        }
    }

    /// Says what happened on stderr, and what to exit with.
    pub(crate) fn report(self) -> ExitCode {
        let (message, code) = match self {
            Failure::Negative(message) => (message, NEGATIVE_CODE),
            Failure::Error(message) => (message, ERROR_CODE),
            Failure::Interrupted { signal, done } => (format!("interrupted: {done}"), SIGNAL_CODE + signal),
            Failure::OutputClosed => return ExitCode::SUCCESS,
        };
        complain(&message);
        ExitCode::from(code)
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Failure {
        serving::unopened(error)
    }
}

/// A write whose reader may have gone: what the command does, and how it ends, matters more than what is said of that.
pub(crate) fn unless_closed(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Writes one line to stderr of something that does not end the command.
pub(crate) fn warn(message: &str) {
    let _ = writeln!(io::stderr(), "{message}");
}

/// Writes to stderr, a line for each of the message; if that fails there is nobody left to tell.
pub(crate) fn complain(message: &str) {
    for line in message.lines() {
        let _ = writeln!(io::stderr(), "hikv: {line}");
    }
}
