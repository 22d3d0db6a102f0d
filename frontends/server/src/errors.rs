//! Refusals of requests, and the table of all error texts that clients receive.

use hikv::Error;
use resp::ProtocolError;

use acl::Reason;
use command_table::Unknown;
use lua_scripts::Failure;

mod fixed;
mod streams;

pub(crate) use fixed::FixedError;
pub(crate) use streams::StreamError;

/// Maximum length of a client's own words in an error, as in Redis.
const QUOTED_BYTES_MAX: usize = 128;

impl From<FixedError> for Refusal {
    fn from(sentence: FixedError) -> Refusal {
        Refusal::Fixed(sentence)
    }
}

impl From<rdb::Error> for Refusal {
    fn from(error: rdb::Error) -> Refusal {
        match error {
            rdb::Error::Unsupported { what, .. } => {
                Refusal::Message(format!("Bad data format: {what} is not supported"))
            }
            rdb::Error::TooLong { .. } => Refusal::Message(format!("Bad data format: {error}")),
            _ => FixedError::BadFormat.into(),
        }
    }
}

/// A reason to answer a request with an error.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// Unknown command, with its name and the start of its quoted arguments.
    UnknownCommand { name: Vec<u8>, arguments: Vec<u8> },
    /// Unknown subcommand of a command with subcommands.
    UnknownSubcommand { command: &'static str, name: Vec<u8> },
    /// Too many arguments for a subcommand, with its name as sent.
    SubcommandArguments { command: &'static str, name: Vec<u8> },
    /// Too few or too many arguments for the command, or for `command|subcommand`.
    ArgumentCount { command: &'static str },
    /// An argument that the command does not accept.
    Syntax,
    /// An argument must be an integer.
    NotAnInteger,
    /// An argument must not be negative.
    Negative,
    /// An invalid cursor.
    Cursor,
    /// The result exceeds the maximum size of a reply.
    ReplyLength { len_bytes_max: usize, accepts_limit: bool },
    /// The request takes too long for its event loop, and has had no effect: it starts again in the background.
    TooLongForLoop,
    /// A key longer than the maximum of its database.
    KeyLength { len_bytes: usize, len_bytes_max: usize },
    /// A database that does not exist.
    DbIndex,
    /// An error without a part of the request.
    Fixed(FixedError),
    /// An error of commands on streams.
    Stream(StreamError),
    /// An invalid time to live, or one too far in the future.
    ExpireTime { command: &'static str },
    /// A message with a part of the request, formatted where it occurs.
    Message(String),
    /// A transaction was discarded without execution, for this reason.
    ExecAbort(String),
    /// The error of a script, with its code; it may be that of a command, which is counted already.
    Script(Failure),
    /// The error of a script that was stopped, with its code: nothing is written.
    Stopped(Vec<u8>),
    /// Denied by ACL.
    Denied { what: String, reason: Reason, object: Vec<u8> },
    /// An unsupported protocol version.
    NoProtocol,
    /// The protocol version must be an integer.
    ProtocolNotAnInteger,
    /// An option that HELLO does not accept.
    HelloOption { option: Vec<u8> },
    /// HELLO by a client that is not logged in.
    HelloNoAuth,
    /// The connection violates the protocol.
    Protocol(ProtocolError),
    /// An error of the store.
    Store(Error),
}

impl Refusal {
    /// Creates the refusal of a request that names no command.
    #[cold]
    pub(crate) fn of_unknown(unknown: Unknown, request: &resp::Request<'_>) -> Refusal {
        match unknown {
            Unknown::Command => Refusal::unknown_command(request),
            Unknown::Subcommand(command) => Refusal::unknown_subcommand(command, request.argument(1)),
            Unknown::ArgumentCount(command) => Refusal::ArgumentCount { command },
        }
    }

    fn unknown_command(request: &resp::Request<'_>) -> Refusal {
        let mut arguments = Vec::new();
        for argument in request.arguments() {
            if arguments.len() >= QUOTED_BYTES_MAX {
                break;
            }
            let left_bytes = QUOTED_BYTES_MAX - arguments.len();
            let argument = shown(argument);
            arguments.extend([b"'", &argument[..argument.len().min(left_bytes)], b"' "].concat());
        }
        Refusal::UnknownCommand { name: cut(request.name()), arguments }
    }

    /// Creates the refusal of an unknown subcommand.
    pub(crate) fn unknown_subcommand(command: &'static str, name: &[u8]) -> Refusal {
        Refusal::UnknownSubcommand { command, name: cut(name) }
    }

    /// Creates the refusal of too many arguments for a subcommand whose row has no limit.
    pub(crate) fn subcommand_arguments(command: &'static str, name: &[u8]) -> Refusal {
        Refusal::SubcommandArguments { command, name: cut(name) }
    }

    /// Creates the refusal of an option of HELLO.
    pub(crate) fn hello_option(option: &[u8]) -> Refusal {
        Refusal::HelloOption { option: cut(option) }
    }

    /// Returns the error reply, in Redis 7's words if it has such an error.
    pub(crate) fn text(&self) -> Vec<u8> {
        match self {
            Refusal::UnknownCommand { name, arguments } => {
                [b"ERR unknown command '", &name[..], b"', with args beginning with: ", arguments].concat()
            }
            Refusal::UnknownSubcommand { command, name } => {
                [b"ERR unknown subcommand '", &name[..], b"'. Try ", command.to_uppercase().as_bytes(), b" HELP."]
                    .concat()
            }
            Refusal::SubcommandArguments { command, name } => {
                let help = command.to_uppercase();
                let said = b"ERR unknown subcommand or wrong number of arguments for '";
                [said, &name[..], b"'. Try ", help.as_bytes(), b" HELP."].concat()
            }
            Refusal::ArgumentCount { command } => {
                format!("ERR wrong number of arguments for '{command}' command").into()
            }
            Refusal::Syntax => b"ERR syntax error".into(),
            Refusal::NotAnInteger => b"ERR value is not an integer or out of range".into(),
            Refusal::Negative => b"ERR value is out of range, must be positive".into(),
            Refusal::Cursor => b"ERR invalid cursor".into(),
            Refusal::ReplyLength { len_bytes_max, accepts_limit } => {
                let how = if *accepts_limit { " with LIMIT" } else { "" };
                format!("ERR reply exceeds {len_bytes_max} bytes; request fewer items{how}").into()
            }
            Refusal::TooLongForLoop => b"ERR the request takes too long for its event loop".into(),
            Refusal::KeyLength { len_bytes, len_bytes_max } => {
                format!("ERR the key has {len_bytes} bytes; the limit is {len_bytes_max}").into()
            }
            Refusal::DbIndex => b"ERR DB index is out of range".into(),
            Refusal::Fixed(sentence) => sentence.text().into(),
            Refusal::Stream(error) => error.text(),
            Refusal::ExpireTime { command } => format!("ERR invalid expire time in '{command}' command").into(),
            Refusal::Message(text) => format!("ERR {text}").into(),
            Refusal::ExecAbort(why) => format!("EXECABORT Transaction discarded because of: {why}").into(),
            Refusal::Script(Failure { text, .. }) | Refusal::Stopped(text) => text.clone(),
            Refusal::Denied { what, .. } => format!("NOPERM {what}").into(),
            Refusal::NoProtocol => b"NOPROTO unsupported protocol version".into(),
            Refusal::ProtocolNotAnInteger => b"ERR Protocol version is not an integer or out of range".into(),
            Refusal::HelloNoAuth => {
                b"NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH \
                  <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the \
                  same time"
                    .into()
            }
            Refusal::HelloOption { option } => [b"ERR Syntax error in HELLO option '", &option[..], b"'"].concat(),
            Refusal::Protocol(error) => format!("ERR {error}").into(),
            Refusal::Store(error) => store_text(error),
        }
    }
}

fn store_text(error: &Error) -> Vec<u8> {
    match error {
        error if error.is_full() => format!("ERR no space left: {error}"),
        Error::NotOrderedYet { .. } => format!("LOADING {error}"),
        Error::NotANumber { .. } => FixedError::NotANumber.text().into(),
        Error::Overflow { .. } => FixedError::Overflow.text().into(),
        _ => format!("ERR {error}"),
    }
    .into()
}

/// Returns the text up to its first NUL, as C would print it.
fn shown(text: &[u8]) -> &[u8] {
    text.split(|byte| *byte == 0).next().unwrap_or(text)
}

fn cut(text: &[u8]) -> Vec<u8> {
    let text = shown(text);
    text[..text.len().min(QUOTED_BYTES_MAX)].to_vec()
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal::Store(error)
    }
}
