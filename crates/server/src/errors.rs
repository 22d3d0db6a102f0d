//! Why a request is refused, and the one table of the texts that clients see.

use hikv::{Error, MediumError};
use resp::ProtocolError;

/// The longest part of a client's own words that an error repeats, as in Redis.
const QUOTED_BYTES_MAX: usize = 128;

/// A request that is answered with an error.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// There is no such command; its name, and the start of its arguments, each quoted.
    UnknownCommand { name: Vec<u8>, arguments: Vec<u8> },
    /// A command that has subcommands has no such one.
    UnknownSubcommand { command: &'static str, name: Vec<u8> },
    /// Too few or too many arguments for the command, or for `command|subcommand`.
    ArgumentCount { command: &'static str },
    /// An argument that the command does not know.
    Syntax,
    /// An argument must be an integer.
    NotAnInteger,
    /// An argument must not be negative.
    Negative,
    /// An argument that is no cursor.
    Cursor,
    /// What was asked for is too much for one reply.
    ReplyLength { len_bytes_max: usize },
    /// A database other than the one there is.
    DbIndex,
    /// An option of Redis that this server does not have.
    Unsupported { command: &'static str, option: &'static str },
    /// A version of the protocol that there is not.
    NoProtocol,
    /// The version of the protocol must be an integer.
    ProtocolNotAnInteger,
    /// An option that HELLO does not take.
    HelloOption { option: Vec<u8> },
    /// The connection does not follow the protocol.
    Protocol(ProtocolError),
    /// The store failed.
    Store(Error),
}

impl Refusal {
    /// The refusal of a request whose command is not known.
    pub(crate) fn unknown_command(request: &resp::Request<'_>) -> Refusal {
        let mut arguments = Vec::new();
        for argument in request.arguments() {
            if arguments.len() >= QUOTED_BYTES_MAX {
                break;
            }
            let room_bytes = QUOTED_BYTES_MAX - arguments.len();
            arguments.extend([b"'", &argument[..argument.len().min(room_bytes)], b"' "].concat());
        }
        Refusal::UnknownCommand { name: cut(request.name()), arguments }
    }

    /// The refusal of a subcommand that is not known.
    pub(crate) fn unknown_subcommand(command: &'static str, name: &[u8]) -> Refusal {
        Refusal::UnknownSubcommand { command, name: cut(name) }
    }

    /// The refusal of an option of HELLO.
    pub(crate) fn hello_option(option: &[u8]) -> Refusal {
        Refusal::HelloOption { option: cut(option) }
    }

    /// The error reply, in the words of Redis 7 where it has them.
    pub(crate) fn text(&self) -> Vec<u8> {
        match self {
            Refusal::UnknownCommand { name, arguments } => {
                [b"ERR unknown command '", &name[..], b"', with args beginning with: ", arguments].concat()
            }
            Refusal::UnknownSubcommand { command, name } => {
                [b"ERR unknown subcommand '", &name[..], b"'. Try ", command.to_uppercase().as_bytes(), b" HELP."]
                    .concat()
            }
            Refusal::ArgumentCount { command } => {
                format!("ERR wrong number of arguments for '{command}' command").into()
            }
            Refusal::Syntax => b"ERR syntax error".into(),
            Refusal::NotAnInteger => b"ERR value is not an integer or out of range".into(),
            Refusal::Negative => b"ERR value is out of range, must be positive".into(),
            Refusal::Cursor => b"ERR invalid cursor".into(),
            Refusal::ReplyLength { len_bytes_max } => {
                format!("ERR the reply would have more than {len_bytes_max} bytes; ask for less at a time, with LIMIT")
                    .into()
            }
            Refusal::DbIndex => b"ERR DB index is out of range".into(),
            Refusal::Unsupported { command, option } => {
                format!("ERR the option {option} of {command} is not supported by this server").into()
            }
            Refusal::NoProtocol => b"NOPROTO unsupported protocol version".into(),
            Refusal::ProtocolNotAnInteger => b"ERR Protocol version is not an integer or out of range".into(),
            Refusal::HelloOption { option } => [b"ERR Syntax error in HELLO option '", &option[..], b"'"].concat(),
            Refusal::Protocol(error) => format!("ERR {error}").into(),
            Refusal::Store(error) => store_text(error),
        }
    }
}

fn store_text(error: &Error) -> Vec<u8> {
    match error {
        Error::Medium(MediumError::Full { .. } | MediumError::Limit { .. }) => format!("ERR no space left: {error}"),
        Error::NotOrderedYet { .. } => format!("LOADING {error}"),
        _ => format!("ERR {error}"),
    }
    .into()
}

fn cut(text: &[u8]) -> Vec<u8> {
    text[..text.len().min(QUOTED_BYTES_MAX)].to_vec()
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal::Store(error)
    }
}
