//! Failures of commands: each prints one line on stderr and ends the program with an exit code.

use std::error::Error;
use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use hikv::OpenError;

use crate::serving;

/// All exit codes, as `--help` and the manual (docs/cli.md) list them.
pub(crate) const EXIT_CODES: [(&str, &str); 4] = [
    ("0", "success; also if the reader of the output closed it"),
    ("1", "the answer is no: key not found, condition failed, store damaged, results wrong"),
    ("2", "an error: the last line on stderr names it, with the path and the value"),
    ("129, 130, 143", "ended by SIGHUP, SIGINT or SIGTERM, after the store was closed"),
];

/// The answer is no: for example, not found or damaged.
const NEGATIVE_CODE: u8 = 1;
/// Wrong arguments or failed operations; the exit code of `clap` for wrong arguments.
const ERROR_CODE: u8 = 2;
/// Added to the number of the signal that ended a command, as shells do.
const SIGNAL_CODE: u8 = 128;

/// The reason why a command did not complete.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The answer is no: for example, a key was not found, or the store is damaged.
    Negative(String),
    /// Something failed.
    Error(String),
    /// A signal ended the command, which closed its store and files.
    Interrupted {
        /// The signal's number.
        signal: u8,
        /// The progress of the command.
        done: String,
    },
    /// The reader of the output closed it: not an error of the command.
    OutputClosed,
}

impl Failure {
    /// Returns an error about the file, store or address `subject`.
    pub(crate) fn at(subject: impl Display, error: impl Display) -> Failure {
        Failure::Error(format!("{subject}: {error}"))
    }

    /// Like [`Failure::at`], for a path.
    pub(crate) fn at_path<E: Error>(path: &Path) -> impl FnOnce(E) -> Failure {
        move |error| Failure::at(path.display(), with_sources(&error))
    }

    /// Returns the error of installing signal handlers.
    pub(crate) fn at_signals(error: io::Error) -> Failure {
        Failure::at("signal handlers", error)
    }

    /// Returns the failure for an error of writing to `subject`.
    pub(crate) fn output(subject: impl Display) -> impl FnOnce(io::Error) -> Failure {
        move |error| match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::OutputClosed,
            _ => Failure::at(subject, error),
        }
    }

    /// Prints the failure on stderr and returns its exit code.
    pub(crate) fn report(self) -> ExitCode {
        let (message, code) = match self {
            Failure::Negative(message) => (message, NEGATIVE_CODE),
            Failure::Error(message) => (message, ERROR_CODE),
            Failure::Interrupted { signal, done } => (format!("interrupted: {done}"), SIGNAL_CODE + signal),
            Failure::OutputClosed => return ExitCode::SUCCESS,
        };
        print_error(&message);
        ExitCode::from(code)
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Failure {
        serving::unopened(error)
    }
}

/// Returns the message of `error`, followed by the message of each source that it does not repeat.
pub(crate) fn with_sources(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(next) = source {
        let message = next.to_string();
        if !text.contains(&message) {
            text = format!("{text}: {message}");
        }
        source = next.source();
    }
    text
}

/// Ignores that the reader of the output closed it: the command continues, and its result decides the exit code.
pub(crate) fn unless_closed(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Prints a warning, which does not end the command, as one line on stderr.
pub(crate) fn warn(message: &str) {
    let _ = writeln!(io::stderr(), "{message}");
}

/// Prints each line of `message` on stderr. Ignores errors: there is no other place to report them.
pub(crate) fn print_error(message: &str) {
    for line in message.lines() {
        let _ = writeln!(io::stderr(), "hikv: {line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Outer(&'static str, io::Error);

    impl Display for Outer {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Outer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.1)
        }
    }

    #[test]
    fn sources_are_printed_once() {
        let with = |text| with_sources(&Outer(text, io::Error::other("disk failed")));
        assert_eq!(with("cannot write ./data"), "cannot write ./data: disk failed");
        assert_eq!(with("cannot write ./data: disk failed"), "cannot write ./data: disk failed");
    }
}
