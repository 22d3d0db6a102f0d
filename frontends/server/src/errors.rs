//! Refusals of requests, and the table of all error texts that clients receive.

use hikv::Error;
use resp::ProtocolError;

use acl::Reason;
use command_table::Unknown;
use lua_scripts::Failure;

/// Maximum length of a client's own words in an error, as in Redis.
const QUOTED_BYTES_MAX: usize = 128;

/// Errors without a part of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FixedError {
    NoSuchKey,
    SameObject,
    NestedMulti,
    ExecWithoutMulti,
    DiscardWithoutMulti,
    WatchInMulti,
    ExecAbort,
    ExecOutOfMemory,
    OutOfMemory,
    NotInTransaction,
    TransactionTooLong,
    NoAuth,
    WrongPass,
    NoPassword,
    NotANumber,
    Overflow,
    DecrementOverflow,
    NotAFloat,
    NanOrInfinity,
    BitOffset,
    BitValue,
    BitArgument,
    BitopNot,
    BitfieldType,
    BitfieldOverflow,
    BitfieldReadOnly,
    Offset,
    StringLength,
    GtLt,
    NxXx,
    BadDump,
    BusyKey,
    NegativeTtl,
    LfuOff,
    NoKeyArguments,
    BadArgumentCount,
    UnknownCommandName,
    NoConfigFile,
    SsubscribeInExec,
    MonitorInExec,
    NoAclFile,
    NoBackupPlace,
    DebugNotAllowed,
    SaveRunning,
    NoSuchClient,
    ClientName,
    ClientInfoValue,
    NoCachingMode,
    CachingYes,
    CachingNo,
    SecondRedirect,
    NoSuchReceiver,
    PrefixWithoutBroadcast,
    BroadcastSwitched,
    OptionsOfBroadcast,
    OptInAndOut,
    OptSwitched,
    InvalidClientId,
    UnknownClient,
    LcsLengths,
    LcsBoth,
    FirstDb,
    SecondDb,
    Timeout,
    TimeoutRange,
    TimeoutNotAnInteger,
    NoRandomness,
    GenpassBits,
    SelfDelete,
    NoReplication,
    NoCluster,
    NoFunctions,
    NoScriptRuns,
    Busy,
    Unkillable,
    NoLibrary,
    BadFormat,
    IdleTime,
    Frequency,
    Panicked,
}

impl FixedError {
    /// Returns the text, in Redis 7's words if it has such an error.
    fn text(self) -> &'static str {
        match self {
            FixedError::NoSuchKey => "ERR no such key",
            FixedError::SameObject => "ERR source and destination objects are the same",
            FixedError::NestedMulti => "ERR MULTI calls can not be nested",
            FixedError::ExecWithoutMulti => "ERR EXEC without MULTI",
            FixedError::DiscardWithoutMulti => "ERR DISCARD without MULTI",
            FixedError::WatchInMulti => "ERR WATCH inside MULTI is not allowed",
            FixedError::ExecAbort => "EXECABORT Transaction discarded because of previous errors.",
            FixedError::OutOfMemory => "OOM command not allowed when used memory > 'maxmemory'.",
            FixedError::ExecOutOfMemory => {
                "EXECABORT Transaction discarded because of: OOM command not allowed when used memory > 'maxmemory'."
            }
            FixedError::NotInTransaction => "ERR Command not allowed inside a transaction",
            FixedError::TransactionTooLong => {
                "ERR transaction is too large: its queued requests exceed the maximum size of a request"
            }
            FixedError::NoAuth => "NOAUTH Authentication required.",
            FixedError::WrongPass => "WRONGPASS invalid username-password pair or user is disabled.",
            FixedError::NoPassword => {
                "ERR AUTH <password> called without any password configured for the default user. Are you sure your \
                 configuration is correct?"
            }
            FixedError::NotANumber => "ERR value is not an integer or out of range",
            FixedError::Overflow => "ERR increment or decrement would overflow",
            FixedError::DecrementOverflow => "ERR decrement would overflow",
            FixedError::NotAFloat => "ERR value is not a valid float",
            FixedError::NanOrInfinity => "ERR increment would produce NaN or Infinity",
            FixedError::BitOffset => "ERR bit offset is not an integer or out of range",
            FixedError::BitValue => "ERR bit is not an integer or out of range",
            FixedError::BitArgument => "ERR The bit argument must be 1 or 0.",
            FixedError::BitopNot => "ERR BITOP NOT must be called with a single source key.",
            FixedError::BitfieldType => {
                "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is."
            }
            FixedError::BitfieldOverflow => "ERR Invalid OVERFLOW type specified",
            FixedError::BitfieldReadOnly => "ERR BITFIELD_RO only supports the GET subcommand",
            FixedError::Offset => "ERR offset is out of range",
            FixedError::StringLength => "ERR string exceeds maximum allowed size (proto-max-bulk-len)",
            FixedError::GtLt => "ERR GT and LT options at the same time are not compatible",
            FixedError::NxXx => "ERR NX and XX, GT or LT options at the same time are not compatible",
            FixedError::BadDump => "ERR DUMP payload version or checksum are wrong",
            FixedError::BusyKey => "BUSYKEY Target key name already exists.",
            FixedError::NegativeTtl => "ERR Invalid TTL value, must be >= 0",
            FixedError::LfuOff => {
                "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when \
                 switching between policies at runtime LRU and LFU data will take some time to adjust."
            }
            FixedError::NoKeyArguments => "ERR The command has no key arguments",
            FixedError::BadArgumentCount => "ERR Invalid number of arguments specified for command",
            FixedError::UnknownCommandName => "ERR Invalid command specified",
            FixedError::SsubscribeInExec => "ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client",
            FixedError::MonitorInExec => "ERR MONITOR isn't allowed for DENY BLOCKING client",
            FixedError::NoConfigFile => "ERR The server is running without a config file",
            FixedError::NoAclFile => {
                "ERR This Redis instance is not configured to use an ACL file. You may want to specify users via the \
                 ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis configuration file set) \
                 in order to store users in the Redis configuration."
            }
            FixedError::NoBackupPlace => {
                "ERR no backup directory: the store is not a directory; start the server with --backup-dir"
            }
            FixedError::DebugNotAllowed => {
                "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run it from a \
                 local connection, otherwise you need to set this option in the configuration file, and then restart the server."
            }
            FixedError::SaveRunning => "ERR Background save already in progress",
            FixedError::NoSuchClient => "ERR No such client",
            FixedError::ClientName => "ERR Client names cannot contain spaces, newlines or special characters.",
            FixedError::ClientInfoValue => {
                "ERR lib-name and lib-ver cannot contain spaces, newlines or special characters."
            }
            FixedError::NoCachingMode => {
                "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled"
            }
            FixedError::CachingYes => "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.",
            FixedError::CachingNo => "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.",
            FixedError::SecondRedirect => "ERR A client can only redirect to a single other client",
            FixedError::NoSuchReceiver => "ERR The client ID you want redirect to does not exist",
            FixedError::PrefixWithoutBroadcast => "ERR PREFIX option requires BCAST mode to be enabled",
            FixedError::BroadcastSwitched => {
                "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with \
                 a different mode."
            }
            FixedError::OptionsOfBroadcast => "ERR OPTIN and OPTOUT are not compatible with BCAST",
            FixedError::OptInAndOut => "ERR You can't specify both OPTIN mode and OPTOUT mode",
            FixedError::OptSwitched => {
                "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with \
                 a different mode."
            }
            FixedError::InvalidClientId => "ERR Invalid client ID",
            FixedError::UnknownClient => "ERR client-id should be greater than 0",
            FixedError::LcsLengths => "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len",
            FixedError::LcsBoth => "ERR If you want both the length and indexes, please just use IDX.",
            FixedError::FirstDb => "ERR invalid first DB index",
            FixedError::SecondDb => "ERR invalid second DB index",
            FixedError::TimeoutNotAnInteger => "ERR timeout is not an integer or out of range",
            FixedError::Timeout => "ERR timeout is negative",
            FixedError::TimeoutRange => "ERR timeout is out of range",
            FixedError::NoRandomness => "ERR the operating system provides no random numbers",
            FixedError::GenpassBits => {
                "ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096"
            }
            FixedError::NoReplication => "ERR replication is not supported; only REPLICAOF NO ONE is accepted",
            FixedError::NoCluster => "ERR This instance has cluster support disabled",
            FixedError::NoFunctions => "ERR functions are not supported",
            FixedError::Busy => {
                "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
            }
            FixedError::Unkillable => {
                "UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait the \
                 script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command."
            }
            FixedError::NoScriptRuns => "NOTBUSY No scripts in execution right now.",
            FixedError::NoLibrary => "ERR Library not found",
            FixedError::BadFormat => "ERR Bad data format",
            FixedError::IdleTime => "ERR Invalid IDLETIME value, must be >= 0",
            FixedError::Frequency => "ERR Invalid FREQ value, must be >= 0 and <= 255",
            FixedError::Panicked => {
                "ERR internal error: the request may or may not have been executed; the connection is closed"
            }
            FixedError::SelfDelete => "ERR The 'default' user cannot be removed",
        }
    }
}

impl From<FixedError> for Refusal {
    fn from(sentence: FixedError) -> Refusal {
        Refusal::Fixed(sentence)
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
    /// A key longer than the maximum of its database.
    KeyLength { len_bytes: usize, len_bytes_max: usize },
    /// A database that does not exist.
    DbIndex,
    /// An error without a part of the request.
    Fixed(FixedError),
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
            Refusal::KeyLength { len_bytes, len_bytes_max } => {
                format!("ERR the key has {len_bytes} bytes; the limit is {len_bytes_max}").into()
            }
            Refusal::DbIndex => b"ERR DB index is out of range".into(),
            Refusal::Fixed(sentence) => sentence.text().into(),
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
