//! Errors of commands on streams.

use super::{Refusal, cut, shown};

/// Errors of commands on streams.
#[derive(Debug)]
pub(crate) enum StreamError {
    InvalidId,
    ZeroId,
    SmallId,
    Exhausted,
    TwoStrategies,
    NegativeMaxlen,
    NegativeLimit,
    LimitWithoutStrategy,
    NoStrategy,
    LimitOfExact,
    IntervalStart,
    IntervalEnd,
    Unbalanced,
    GroupOfXread,
    NoackOfXread,
    NoGroupOption,
    LastIdOfGroup,
    NewIdWithoutGroup,
    BlockInScript { command: Vec<u8> },
    NoKey,
    BusyGroup,
    NegativeReadCount,
    NegativeAddedCount,
    SmallerThanDeleted,
    SmallerThanLast,
    FewerThanEntries,
    NotANumber { what: &'static str, command: &'static str },
    ClaimOption { option: Vec<u8> },
    ClaimCount,
    KeyGone,
    GroupGone,
    NoGroup { key: Vec<u8>, group: Vec<u8> },
    NoKeyOrGroup { key: Vec<u8>, group: Vec<u8>, command: &'static str },
}

impl From<StreamError> for Refusal {
    fn from(error: StreamError) -> Refusal {
        Refusal::Stream(error)
    }
}

impl StreamError {
    /// Creates the error of a script that would wait.
    pub(crate) fn block_in_script(command: &[u8]) -> StreamError {
        StreamError::BlockInScript { command: cut(command) }
    }

    /// Creates the error of an option that XCLAIM does not accept.
    pub(crate) fn claim_option(option: &[u8]) -> StreamError {
        StreamError::ClaimOption { option: cut(option) }
    }

    /// Returns the text, in Redis 7's words.
    pub(super) fn text(&self) -> Vec<u8> {
        let text = match self {
            StreamError::InvalidId => "Invalid stream ID specified as stream command argument",
            StreamError::ZeroId => "The ID specified in XADD must be greater than 0-0",
            StreamError::SmallId => "The ID specified in XADD is equal or smaller than the target stream top item",
            StreamError::Exhausted => "The stream has exhausted the last possible ID, unable to add more items",
            StreamError::TwoStrategies => "syntax error, MAXLEN and MINID options at the same time are not compatible",
            StreamError::NegativeMaxlen => "The MAXLEN argument must be >= 0.",
            StreamError::NegativeLimit => "The LIMIT argument must be >= 0.",
            StreamError::LimitWithoutStrategy => {
                "syntax error, LIMIT cannot be used without specifying a trimming strategy"
            }
            StreamError::NoStrategy => "syntax error, XTRIM must be called with a trimming strategy",
            StreamError::LimitOfExact => "syntax error, LIMIT cannot be used without the special ~ option",
            StreamError::IntervalStart => "invalid start ID for the interval",
            StreamError::IntervalEnd => "invalid end ID for the interval",
            StreamError::Unbalanced => {
                "Unbalanced XREAD list of streams: for each stream key an ID or '$' must be specified."
            }
            StreamError::GroupOfXread => "The GROUP option is only supported by XREADGROUP. You called XREAD instead.",
            StreamError::NoackOfXread => "The NOACK option is only supported by XREADGROUP. You called XREAD instead.",
            StreamError::NoGroupOption => "Missing GROUP option for XREADGROUP",
            StreamError::LastIdOfGroup => {
                "The $ ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer \
                 by specifying a proper ID, or use the > ID to get new messages. The $ ID would just return an empty \
                 result set."
            }
            StreamError::NewIdWithoutGroup => {
                "The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option."
            }
            StreamError::NoKey => {
                "The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the \
                 MKSTREAM option to create an empty stream automatically."
            }
            StreamError::NegativeReadCount => "value for ENTRIESREAD must be positive or -1",
            StreamError::NegativeAddedCount => "entries_added must be positive",
            StreamError::SmallerThanDeleted => {
                "The ID specified in XSETID is smaller than the provided max_deleted_entry_id"
            }
            StreamError::SmallerThanLast => "The ID specified in XSETID is smaller than the target stream top item",
            StreamError::FewerThanEntries => {
                "The entries_added specified in XSETID is smaller than the target stream length"
            }
            StreamError::ClaimCount => "COUNT must be > 0",
            StreamError::BlockInScript { command } => {
                return [b"ERR ", &command[..], b" command is not allowed with BLOCK option from scripts"].concat();
            }
            StreamError::NotANumber { what, command } => {
                return format!("ERR Invalid {what} argument for {command}").into();
            }
            StreamError::ClaimOption { option } => {
                return [b"ERR Unrecognized XCLAIM option '", &option[..], b"'"].concat();
            }
            StreamError::BusyGroup => return b"BUSYGROUP Consumer Group name already exists".into(),
            StreamError::KeyGone => return b"UNBLOCKED the stream key no longer exists".into(),
            StreamError::GroupGone => {
                return b"NOGROUP the consumer group this client was blocked on no longer exists".into();
            }
            StreamError::NoGroup { key, group } => {
                let parts = [b"NOGROUP No such consumer group '", shown(group), b"' for key name '", shown(key), b"'"];
                return parts.concat();
            }
            StreamError::NoKeyOrGroup { key, group, command } => {
                let end = if *command == "xreadgroup" { " in XREADGROUP with GROUP option" } else { "" };
                let said = [b"NOGROUP No such key '", shown(key), b"' or consumer group '", shown(group), b"'"];
                return [&said.concat()[..], end.as_bytes()].concat();
            }
        };
        [b"ERR ", text.as_bytes()].concat()
    }
}
