//! Why a request is refused, and the one table of the texts that clients see.

use hikv::Error;
use resp::ProtocolError;

use crate::administration::acl::Reason;

/// The longest part of a client's own words that an error repeats, as in Redis.
const QUOTED_BYTES_MAX: usize = 128;

/// Sentences that name nothing of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sentence {
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
    NoScripts,
    NoScriptRuns,
    NoLibrary,
    BadFormat,
    IdleTime,
    Frequency,
    Panicked,
}

impl Sentence {
    /// In the words of Redis 7, where it has them.
    fn text(self) -> &'static str {
        match self {
            Sentence::NoSuchKey => "ERR no such key",
            Sentence::SameObject => "ERR source and destination objects are the same",
            Sentence::NestedMulti => "ERR MULTI calls can not be nested",
            Sentence::ExecWithoutMulti => "ERR EXEC without MULTI",
            Sentence::DiscardWithoutMulti => "ERR DISCARD without MULTI",
            Sentence::WatchInMulti => "ERR WATCH inside MULTI is not allowed",
            Sentence::ExecAbort => "EXECABORT Transaction discarded because of previous errors.",
            Sentence::OutOfMemory => "OOM command not allowed when used memory > 'maxmemory'.",
            Sentence::ExecOutOfMemory => {
                "EXECABORT Transaction discarded because of: OOM command not allowed when used memory > 'maxmemory'."
            }
            Sentence::NotInTransaction => "ERR Command not allowed inside a transaction",
            Sentence::TransactionTooLong => "ERR the transaction's requests take more memory than a request may",
            Sentence::NoAuth => "NOAUTH Authentication required.",
            Sentence::WrongPass => "WRONGPASS invalid username-password pair or user is disabled.",
            Sentence::NoPassword => {
                "ERR AUTH <password> called without any password configured for the default user. Are you sure your \
                 configuration is correct?"
            }
            Sentence::NotANumber => "ERR value is not an integer or out of range",
            Sentence::Overflow => "ERR increment or decrement would overflow",
            Sentence::DecrementOverflow => "ERR decrement would overflow",
            Sentence::NotAFloat => "ERR value is not a valid float",
            Sentence::NanOrInfinity => "ERR increment would produce NaN or Infinity",
            Sentence::BitOffset => "ERR bit offset is not an integer or out of range",
            Sentence::BitValue => "ERR bit is not an integer or out of range",
            Sentence::BitArgument => "ERR The bit argument must be 1 or 0.",
            Sentence::BitopNot => "ERR BITOP NOT must be called with a single source key.",
            Sentence::BitfieldType => {
                "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is."
            }
            Sentence::BitfieldOverflow => "ERR Invalid OVERFLOW type specified",
            Sentence::BitfieldReadOnly => "ERR BITFIELD_RO only supports the GET subcommand",
            Sentence::Offset => "ERR offset is out of range",
            Sentence::StringLength => "ERR string exceeds maximum allowed size (proto-max-bulk-len)",
            Sentence::GtLt => "ERR GT and LT options at the same time are not compatible",
            Sentence::NxXx => "ERR NX and XX, GT or LT options at the same time are not compatible",
            Sentence::BadDump => "ERR DUMP payload version or checksum are wrong",
            Sentence::BusyKey => "BUSYKEY Target key name already exists.",
            Sentence::NegativeTtl => "ERR Invalid TTL value, must be >= 0",
            Sentence::LfuOff => {
                "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when \
                 switching between policies at runtime LRU and LFU data will take some time to adjust."
            }
            Sentence::NoKeyArguments => "ERR The command has no key arguments",
            Sentence::BadArgumentCount => "ERR Invalid number of arguments specified for command",
            Sentence::UnknownCommandName => "ERR Invalid command specified",
            Sentence::SsubscribeInExec => "ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client",
            Sentence::MonitorInExec => "ERR MONITOR isn't allowed for DENY BLOCKING client",
            Sentence::NoConfigFile => "ERR The server is running without a config file",
            Sentence::NoAclFile => {
                "ERR This Redis instance is not configured to use an ACL file. You may want to specify users via the \
                 ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis configuration file set) \
                 in order to store users in the Redis configuration."
            }
            Sentence::NoBackupPlace => {
                "ERR the store is no directory, and nobody has said where its backup goes (--backup-dir)"
            }
            Sentence::DebugNotAllowed => {
                "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run it from a \
                 local connection, otherwise you need to set this option in the configuration file, and then restart the server."
            }
            Sentence::SaveRunning => "ERR Background save already in progress",
            Sentence::NoSuchClient => "ERR No such client",
            Sentence::ClientName => "ERR Client names cannot contain spaces, newlines or special characters.",
            Sentence::ClientInfoValue => {
                "ERR lib-name and lib-ver cannot contain spaces, newlines or special characters."
            }
            Sentence::NoCachingMode => {
                "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled"
            }
            Sentence::CachingYes => "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.",
            Sentence::CachingNo => "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.",
            Sentence::SecondRedirect => "ERR A client can only redirect to a single other client",
            Sentence::NoSuchReceiver => "ERR The client ID you want redirect to does not exist",
            Sentence::PrefixWithoutBroadcast => "ERR PREFIX option requires BCAST mode to be enabled",
            Sentence::BroadcastSwitched => {
                "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with \
                 a different mode."
            }
            Sentence::OptionsOfBroadcast => "ERR OPTIN and OPTOUT are not compatible with BCAST",
            Sentence::OptInAndOut => "ERR You can't specify both OPTIN mode and OPTOUT mode",
            Sentence::OptSwitched => {
                "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with \
                 a different mode."
            }
            Sentence::InvalidClientId => "ERR Invalid client ID",
            Sentence::UnknownClient => "ERR client-id should be greater than 0",
            Sentence::LcsLengths => "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len",
            Sentence::LcsBoth => "ERR If you want both the length and indexes, please just use IDX.",
            Sentence::FirstDb => "ERR invalid first DB index",
            Sentence::SecondDb => "ERR invalid second DB index",
            Sentence::TimeoutNotAnInteger => "ERR timeout is not an integer or out of range",
            Sentence::Timeout => "ERR timeout is negative",
            Sentence::TimeoutRange => "ERR timeout is out of range",
            Sentence::NoRandomness => "ERR the system has no randomness to give",
            Sentence::GenpassBits => {
                "ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096"
            }
            Sentence::NoReplication => "ERR there is no replication: the server follows nobody but NO ONE",
            Sentence::NoCluster => "ERR This instance has cluster support disabled",
            Sentence::NoScripts => "ERR this server runs no scripts and no functions",
            Sentence::NoScriptRuns => "NOTBUSY No scripts in execution right now.",
            Sentence::NoLibrary => "ERR Library not found",
            Sentence::BadFormat => "ERR Bad data format",
            Sentence::IdleTime => "ERR Invalid IDLETIME value, must be >= 0",
            Sentence::Frequency => "ERR Invalid FREQ value, must be >= 0 and <= 255",
            Sentence::Panicked => {
                "ERR the request failed inside the server, which may have carried it out or not; the connection is closed"
            }
            Sentence::SelfDelete => "ERR The 'default' user cannot be removed",
        }
    }
}

impl From<Sentence> for Refusal {
    fn from(sentence: Sentence) -> Refusal {
        Refusal::Says(sentence)
    }
}

/// A request that is answered with an error.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// There is no such command; its name, and the start of its arguments, each quoted.
    UnknownCommand { name: Vec<u8>, arguments: Vec<u8> },
    /// A command that has subcommands has no such one.
    UnknownSubcommand { command: &'static str, name: Vec<u8> },
    /// Too many arguments for a subcommand, named as it was sent.
    SubcommandArguments { command: &'static str, name: Vec<u8> },
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
    /// A key that is longer than keys of its database may be.
    KeyLength { len_bytes: usize, len_bytes_max: usize },
    /// A database that there is not.
    DbIndex,
    /// One of the sentences that name nothing of the request.
    Says(Sentence),
    /// A time to live that is none, or too far away.
    ExpireTime { command: &'static str },
    /// A message that names something of the request, made where it is known.
    Names(String),
    /// A transaction is over without having been executed, for this reason.
    ExecAbort(String),
    /// What an ACL denies.
    Denied { what: String, reason: Reason, object: Vec<u8> },
    /// A version of the protocol that there is not.
    NoProtocol,
    /// The version of the protocol must be an integer.
    ProtocolNotAnInteger,
    /// An option that HELLO does not take.
    HelloOption { option: Vec<u8> },
    /// HELLO by a client that has not said who it is.
    HelloNoAuth,
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
            let left_bytes = QUOTED_BYTES_MAX - arguments.len();
            let argument = shown(argument);
            arguments.extend([b"'", &argument[..argument.len().min(left_bytes)], b"' "].concat());
        }
        Refusal::UnknownCommand { name: cut(request.name()), arguments }
    }

    /// The refusal of a subcommand that is not known.
    pub(crate) fn unknown_subcommand(command: &'static str, name: &[u8]) -> Refusal {
        Refusal::UnknownSubcommand { command, name: cut(name) }
    }

    /// The refusal of a subcommand that takes fewer arguments, though its row has no bound.
    pub(crate) fn subcommand_arguments(command: &'static str, name: &[u8]) -> Refusal {
        Refusal::SubcommandArguments { command, name: cut(name) }
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
            Refusal::ReplyLength { len_bytes_max } => {
                format!("ERR the reply would have more than {len_bytes_max} bytes; ask for less at a time, with LIMIT")
                    .into()
            }
            Refusal::KeyLength { len_bytes, len_bytes_max } => {
                format!("ERR the key has {len_bytes} bytes; the limit is {len_bytes_max}").into()
            }
            Refusal::DbIndex => b"ERR DB index is out of range".into(),
            Refusal::Says(sentence) => sentence.text().into(),
            Refusal::ExpireTime { command } => format!("ERR invalid expire time in '{command}' command").into(),
            Refusal::Names(text) => format!("ERR {text}").into(),
            Refusal::ExecAbort(why) => format!("EXECABORT Transaction discarded because of: {why}").into(),
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
        Error::NotANumber { .. } => Sentence::NotANumber.text().into(),
        Error::Overflow { .. } => Sentence::Overflow.text().into(),
        _ => format!("ERR {error}"),
    }
    .into()
}

/// As much of a text as C would show.
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
