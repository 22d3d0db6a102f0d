//! Start parameters, under the names of `CONFIG`: from a file ([`file`]), overridden by the command line.
//!
//! [`Parameters`] become a [`Config`]; parameters without a field there are passed on unchanged. `CONFIG REWRITE`
//! ([`rewrite`]) writes the current values to the file.

mod config;
mod file;
mod first;
mod foreign;
mod rewrite;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) use first::{acl_of, settings_of};
pub(crate) use rewrite::ConfigFile;

use crate::administration::secrets::Secret;
use crate::administration::settings::{self, Effect, Kind, PARAMETERS, Parameter};
use acl::{User, user_of};

/// Parameters by their names in `CONFIG`: those of a file, overridden by those of the command line.
#[derive(Clone, Default)]
pub struct Parameters {
    /// By parameter index.
    given: BTreeMap<usize, Given>,
    password: Option<Secret>,
    users: BTreeMap<String, Arc<User>>,
    file: Option<PathBuf>,
    /// World-readable files that contain a password.
    exposed: Vec<PathBuf>,
    /// Ignored names.
    ignored: Vec<(Place, String)>,
    /// Accepted names, each with the difference from the requested behaviour.
    noted: Vec<(Place, String, &'static str)>,
}

/// A given value.
#[derive(Clone)]
struct Given {
    value: String,
    place: Place,
}

/// Where it was given.
#[derive(Clone, PartialEq, Eq)]
enum Place {
    CommandLine,
    Line { file: Arc<PathBuf>, number: usize },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::CommandLine => f.write_str("command line"),
            Place::Line { file, number } => write!(f, "{}:{number}", file.display()),
        }
    }
}

/// Omits the values, which may be secrets.
impl fmt::Debug for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parameters").field("file", &self.file).finish_non_exhaustive()
    }
}

impl Parameters {
    /// Reads a file in the format of `redis.conf`.
    ///
    /// # Errors
    /// An unreadable file, or invalid lines in it or in an included file. The error has one line for each, with file,
    /// line, name and value; a value that may be a password is omitted.
    pub fn read(path: &Path) -> io::Result<Parameters> {
        let path = path.canonicalize().map_err(|error| at(path.display(), error.kind(), error))?;
        let text = file::text_of(&path)?;
        Parameters::parse(&path, &text)
    }

    /// Parses `text`, the contents of the file `path`.
    fn parse(path: &Path, text: &str) -> io::Result<Parameters> {
        let mut parameters = Parameters { file: Some(path.to_owned()), ..Parameters::default() };
        let mut errors = Vec::new();
        file::take(&mut parameters, path, text, 0, &mut errors);
        match errors.as_slice() {
            [] => Ok(parameters),
            [first, ..] => {
                let lines: Vec<String> = errors.iter().map(io::Error::to_string).collect();
                Err(io::Error::new(first.kind(), lines.join("\n")))
            }
        }
    }

    /// Sets a parameter, overriding the file.
    ///
    /// # Errors
    /// An unknown parameter, or an invalid value.
    pub fn set(&mut self, name: &str, value: &str) -> io::Result<()> {
        self.take(Place::CommandLine, name, &[value.to_owned()])
    }

    /// Returns a parameter's value, if one was given; never a password.
    pub fn value(&self, name: &str) -> Option<&str> {
        let given = self.given.get(&settings::by_name(name.as_bytes())?)?;
        Some(&given.value)
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = (usize, &str)> {
        self.given.iter().map(|(index, given)| (*index, given.value.as_str()))
    }

    pub(crate) fn users(&self) -> &BTreeMap<String, Arc<User>> {
        &self.users
    }

    /// Returns whether there are lines about users, including `requirepass`.
    pub(crate) fn has_users(&self) -> bool {
        self.password.is_some() || !self.users.is_empty()
    }

    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Logs warnings about the file.
    pub(crate) fn warn(&self) {
        for file in &self.exposed {
            tracing::warn!(file = %file.display(), "file contains a password and is readable by all users; restrict it with chmod");
        }
        for (place, name, note) in &self.noted {
            tracing::warn!(%place, name, "{note}");
        }
        if !self.ignored.is_empty() {
            let names: Vec<&str> = self.ignored.iter().map(|(_, name)| name.as_str()).collect();
            tracing::info!(names = names.join(" "), "ignored Redis parameters that have no effect");
        }
    }

    /// Applies one line.
    fn take(&mut self, place: Place, name: &str, words: &[String]) -> io::Result<()> {
        if name == "user" {
            return self.take_user(&place, words);
        }
        let is_known = name != "dbfilename" && settings::by_name(name.as_bytes()).is_some();
        let is_in_file = matches!(place, Place::Line { .. });
        if !is_known && is_in_file && foreign::is_harmless(name, words) {
            self.ignored.push((place, name.to_owned()));
            return Ok(());
        }
        if let Some(note) = foreign::note(name).filter(|_| is_in_file && words != ["always"]) {
            self.noted.push((place, name.to_owned(), note));
            return Ok(());
        }
        let wrong = |what: &str| wrong(&place, name, words, what);
        let index = settings::by_name(name.as_bytes()).ok_or_else(|| wrong(foreign::refusal(name)))?;
        let parameter = &PARAMETERS[index];
        let value = self.canonical(index, words).map_err(|what| wrong(&what))?;
        if parameter.effect == Effect::Password {
            self.password = (!value.is_empty()).then(|| value.into());
        } else {
            self.given.insert(index, Given { value, place });
        }
        Ok(())
    }

    /// Returns the value of a parameter in canonical form, or an error message.
    fn canonical(&self, index: usize, words: &[String]) -> Result<String, String> {
        let parameter = &PARAMETERS[index];
        if words.len() != 1 && (words.is_empty() || !parameter.kind.has_words()) {
            return Err(format!("expected one value, got {}", words.len()));
        }
        let value = parameter.kind.canonical(words.join(" ").as_bytes())?;
        if parameter.effect == Effect::Constant && value != parameter.first {
            return Err(format!("only '{}' is supported", parameter.first));
        }
        let before = self.given.get(&index).map_or(parameter.first, |given| &given.value);
        Ok(settings::completed(index, before, value))
    }

    fn take_user(&mut self, place: &Place, words: &[String]) -> io::Result<()> {
        let line = format!("user {}", words.join(" "));
        let user = user_of(&line).map_err(|what| at(place, io::ErrorKind::InvalidData, what))?;
        self.users.insert(user.name.clone(), Arc::new(user));
        Ok(())
    }
}

impl Parameter {
    /// Formats the line that sets this value.
    fn line(&self, value: &str) -> String {
        let shown = if self.kind.has_words() && !value.is_empty() { value.into() } else { file::quoted(value) };
        format!("{} {shown}", self.name)
    }
}

impl Kind {
    /// Returns whether a value may have several words.
    fn has_words(self) -> bool {
        matches!(self, Kind::Words | Kind::OutputLimits)
    }
}

/// Returns an error for `name words…`; the words are omitted if they may be a secret.
fn wrong(place: &Place, name: &str, words: &[String], what: &str) -> io::Error {
    let shown = if may_be_secret(name) { "(redacted)".into() } else { words.join(" ") };
    at(place, io::ErrorKind::InvalidData, format_args!("{name} '{shown}': {what}"))
}

/// Returns whether the name suggests a secret: the names of Redis' secret parameters contain these words, and so do
/// most misspellings.
fn may_be_secret(name: &str) -> bool {
    ["pas", "auth", "key"].iter().any(|part| name.contains(part)) && settings::by_name(name.as_bytes()).is_none()
        || name == "requirepass"
}

fn at(place: impl fmt::Display, kind: io::ErrorKind, what: impl fmt::Display) -> io::Error {
    io::Error::new(kind, format!("{place}: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> io::Result<Parameters> {
        Parameters::parse(Path::new("/etc/hikv.conf"), text)
    }

    #[test]
    fn command_line_overrides_last_line() {
        let mut parameters = parse("# c\n\nTIMEOUT 1\r\ntimeout \"2\"\nmaxmemory 1kb\n").expect("a file");
        assert_eq!((parameters.value("timeout"), parameters.value("maxmemory")), (Some("2"), Some("1024")));
        parameters.set("timeout", "3").expect("a number");
        assert_eq!((parameters.value("Timeout"), parameters.value("port")), (Some("3"), None));
    }

    #[test]
    fn each_client_class_may_have_a_line() {
        let text = "client-output-buffer-limit normal 1 0 0\nclient-output-buffer-limit pubsub 2mb 0 0\n";
        let wanted = "normal 1 0 0 slave 0 0 0 pubsub 2097152 0 0";
        assert_eq!(parse(text).expect("a file").value("client-output-buffer-limit"), Some(wanted));
    }

    #[test]
    fn wrong_directive_is_named() {
        for (text, words) in [
            ("timeout soon", "/etc/hikv.conf:1: timeout 'soon': argument couldn't be parsed into an integer"),
            ("\nnonsense /run/x", ":2: nonsense '/run/x': unknown parameter"),
            ("replicaof 10.0.0.1 6379", "replication is not supported; remove the line"),
            ("unixsocketperm 0899", "unixsocketperm '0899': argument couldn't be parsed into an octal number"),
            ("timeout", "timeout '': expected one value, got 0"),
            ("dir a b", "expected one value, got 2"),
            ("timeout \"1", "unbalanced quotes"),
            ("cluster-enabled yes", "only 'no' is supported"),
            ("user ada +nothing", ":1: '+nothing': Unknown command"),
        ] {
            let error = parse(text).expect_err("it is wrong").to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn all_errors_are_reported_together() {
        let text = "timeout soon\nport 7\nnonsense x\nuser ada +nothing\ndir \"\ntcp-backlog 511\n";
        let error = parse(text).expect_err("it is wrong").to_string();
        let places: Vec<&str> = error.lines().map(|line| line.split(": ").next().unwrap_or_default()).collect();
        assert_eq!(places, ["/etc/hikv.conf:1", "/etc/hikv.conf:3", "/etc/hikv.conf:4", "/etc/hikv.conf:5"], "{error}");
    }

    #[test]
    fn irrelevant_directive_is_ignored_only_in_file() {
        let parameters = parse("tcp-backlog 511\nDaemonize no\nport 7\ndaemonize yes\n").expect("a file");
        assert!(matches!(&parameters.noted[..], [(_, name, _)] if name == "daemonize"));
        let ignored: Vec<_> = parameters.ignored.iter().map(|(place, name)| format!("{place} {name}")).collect();
        assert_eq!(ignored, ["/etc/hikv.conf:1 tcp-backlog", "/etc/hikv.conf:2 daemonize"]);
        assert!(Parameters::default().set("tcp-backlog", "511").is_err());
    }

    #[test]
    fn errors_contain_no_secrets() {
        for text in ["masterauth hush", "requirepas hush", "requirepass hush hush", "user ada <hush"] {
            let error = parse(text).expect_err("it is wrong").to_string();
            assert!(!error.contains("hush"), "{error}");
        }
        assert!(!format!("{:?}", parse("requirepass hush").expect("a file")).contains("hush"));
    }
}
