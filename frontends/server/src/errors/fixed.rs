//! Errors whose texts contain no part of the request.

/// Errors without a part of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FixedError {
    NoSuchKey,
    OutOfRange,
    OutOfCounts,
    WrongType,
    NotAString,
    DamagedCollection,
    HashNotANumber,
    HashNotAFloat,
    NoCollectionsYet,
    IndexOutOfRange,
    ZeroRank,
    NegativeCount,
    NegativeMaxlen,
    KeyCount,
    ElementCount,
    TimeoutNotAFloat,
    Unblocked,
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
    NotSortable,
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
    BadKeyArguments,
    NotFinite,
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
    StreamDump,
    IdleTime,
    Frequency,
    XxNx,
    GtLtNx,
    SinglePair,
    NanScore,
    MinMaxScore,
    MinMaxText,
    LimitOfRanks,
    ScoresByLex,
    Weight,
    NegativeLimit,
    Panicked,
}

impl FixedError {
    /// Returns the text, in Redis 7's words if it has such an error.
    pub(super) fn text(self) -> &'static str {
        match self {
            FixedError::NoSuchKey => "ERR no such key",
            FixedError::OutOfRange => "ERR value is out of range",
            FixedError::OutOfCounts => {
                "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807"
            }
            FixedError::WrongType => "WRONGTYPE Operation against a key holding the wrong kind of value",
            FixedError::NotAString => "ERR The specified keys must contain string values",
            FixedError::DamagedCollection => {
                "ERR the record of the collection is damaged, or written by a later version"
            }
            FixedError::HashNotANumber => "ERR hash value is not an integer",
            FixedError::HashNotAFloat => "ERR hash value is not a float",
            FixedError::NoCollectionsYet => {
                "ERR the first collection of a store cannot be made here; make it outside of a transaction"
            }
            FixedError::IndexOutOfRange => "ERR index out of range",
            FixedError::ZeroRank => {
                "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to \
                 start from the end of the list"
            }
            FixedError::NegativeCount => "ERR COUNT can't be negative",
            FixedError::NegativeMaxlen => "ERR MAXLEN can't be negative",
            FixedError::KeyCount => "ERR numkeys should be greater than 0",
            FixedError::ElementCount => "ERR count should be greater than 0",
            FixedError::TimeoutNotAFloat => "ERR timeout is not a float or out of range",
            FixedError::Unblocked => "UNBLOCKED client unblocked via CLIENT UNBLOCK",
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
            FixedError::NotSortable => "ERR One or more scores can't be converted into double",
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
            FixedError::BadKeyArguments => "ERR Invalid arguments specified for command",
            FixedError::NotFinite => "ERR value is NaN or Infinity",
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
            FixedError::StreamDump => "ERR streams cannot be dumped",
            FixedError::IdleTime => "ERR Invalid IDLETIME value, must be >= 0",
            FixedError::Frequency => "ERR Invalid FREQ value, must be >= 0 and <= 255",
            FixedError::XxNx => "ERR XX and NX options at the same time are not compatible",
            FixedError::GtLtNx => "ERR GT, LT, and/or NX options at the same time are not compatible",
            FixedError::SinglePair => "ERR INCR option supports a single increment-element pair",
            FixedError::NanScore => "ERR resulting score is not a number (NaN)",
            FixedError::MinMaxScore => "ERR min or max is not a float",
            FixedError::MinMaxText => "ERR min or max not valid string range item",
            FixedError::LimitOfRanks => {
                "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX"
            }
            FixedError::ScoresByLex => "ERR syntax error, WITHSCORES not supported in combination with BYLEX",
            FixedError::Weight => "ERR weight value is not a float",
            FixedError::NegativeLimit => "ERR LIMIT can't be negative",
            FixedError::Panicked => {
                "ERR internal error: the request may or may not have been executed; the connection is closed"
            }
            FixedError::SelfDelete => "ERR The 'default' user cannot be removed",
        }
    }
}
