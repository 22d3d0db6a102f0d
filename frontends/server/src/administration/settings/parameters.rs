//! The parameters of `CONFIG`: names, defaults and types.
//!
//! A parameter that only setup scripts of clients query, and that has no effect here, is [`Effect::None`];
//! `docs/redis.md` describes these.

use hikv::pool::Sharing;

use super::sizes::bytes_of;
use crate::administration::output_limits::OutputLimits;

/// The type of a parameter's value.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    YesOrNo,
    Integer {
        min: i64,
        max: i64,
    },
    /// File permissions in octal digits.
    Octal {
        max: u32,
    },
    /// A size in bytes, with an optional unit such as `kb` or `mb`.
    Bytes {
        min: u64,
        max: u64,
    },
    Choice(&'static [&'static str]),
    Text,
    /// Any number of words.
    Words,
    /// Letters for classes of keyspace events.
    Events,
    /// Client classes, each with three numbers.
    OutputLimits,
    /// How threads share the work.
    Split,
}

/// The effect of changing the parameter.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// None.
    None,
    /// It can be set only at start.
    Fixed,
    /// It always has its default value.
    Constant,
    Clients,
    Memory,
    Backlogs,
    BulkBytes,
    Protection,
    Events,
    BusyTime,
    SlowTime,
    SlowCount,
    LatencyTime,
    LatencyTracking,
    LogLevel,
    OutputLimits,
    IdleTime,
    KeepAlive,
    TrackedKeys,
    Password,
    /// Certificates are reloaded.
    Tls,
}

pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) first: &'static str,
    pub(crate) kind: Kind,
    pub(crate) effect: Effect,
}

const fn parameter(name: &'static str, first: &'static str, kind: Kind, effect: Effect) -> Parameter {
    Parameter { name, first, kind, effect }
}

const fn int(min: i64, max: i64) -> Kind {
    Kind::Integer { min, max }
}

/// Queried by setup scripts; nothing is evicted whichever it is.
const EVICTION_POLICIES: [&str; 8] = [
    "noeviction",
    "allkeys-lru",
    "volatile-lru",
    "allkeys-lfu",
    "volatile-lfu",
    "allkeys-random",
    "volatile-random",
    "volatile-ttl",
];

const ANY_BYTES: Kind = Kind::Bytes { min: 0, max: u64::MAX };

/// Sorted by name.
pub(crate) static PARAMETERS: [Parameter; 90] = [
    parameter("acl-pubsub-default", "resetchannels", Kind::Choice(&["resetchannels", "allchannels"]), Effect::Constant),
    parameter("aclfile", "", Kind::Text, Effect::Fixed),
    parameter("active-expire-effort", "1", int(1, 10), Effect::None),
    parameter("activedefrag", "no", Kind::YesOrNo, Effect::None),
    parameter("activerehashing", "yes", Kind::YesOrNo, Effect::None),
    parameter("aof-use-rdb-preamble", "yes", Kind::YesOrNo, Effect::None),
    parameter("appendfsync", "always", Kind::Choice(&["always", "everysec", "no"]), Effect::Constant),
    parameter("appendonly", "no", Kind::YesOrNo, Effect::None),
    parameter("backup-dir", "", Kind::Text, Effect::Fixed),
    parameter("bind", "", Kind::Words, Effect::Fixed),
    parameter("busy-reply-threshold", "5000", int(0, i64::MAX), Effect::BusyTime),
    parameter(
        "client-output-buffer-limit",
        "normal 0 0 0 slave 0 0 0 pubsub 33554432 8388608 60",
        Kind::OutputLimits,
        Effect::OutputLimits,
    ),
    parameter("client-query-buffer-limit", "1074790400", ANY_BYTES, Effect::Constant),
    parameter("cluster-enabled", "no", Kind::YesOrNo, Effect::Constant),
    parameter("databases", "16", int(1, 16), Effect::Constant),
    parameter("dbfilename", "", Kind::Text, Effect::Constant),
    parameter("dir", "", Kind::Text, Effect::Fixed),
    parameter("durability", "most", Kind::Choice(&["most", "power", "buffered", "process"]), Effect::Fixed),
    parameter("enable-debug-command", "no", Kind::Choice(&["no", "local", "yes"]), Effect::Fixed),
    parameter("enable-module-command", "no", Kind::Choice(&["no", "local", "yes"]), Effect::Constant),
    parameter("enable-protected-configs", "no", Kind::Choice(&["no", "local", "yes"]), Effect::Constant),
    parameter("engine", "", Kind::Text, Effect::Fixed),
    parameter("hash-max-listpack-entries", "512", int(0, i64::MAX), Effect::None),
    parameter("hash-max-listpack-value", "64", int(0, i64::MAX), Effect::None),
    parameter("hash-max-ziplist-entries", "512", int(0, i64::MAX), Effect::None),
    parameter("hash-max-ziplist-value", "64", int(0, i64::MAX), Effect::None),
    parameter("hll-sparse-max-bytes", "3000", int(0, i64::MAX), Effect::None),
    parameter("http", "", Kind::Text, Effect::Fixed),
    parameter("http-hosts", "", Kind::Words, Effect::Fixed),
    parameter("http-tls", "no", Kind::YesOrNo, Effect::Fixed),
    parameter("hz", "10", int(1, 500), Effect::None),
    parameter("io-threads", "1", int(1, 128), Effect::Fixed),
    parameter("latency-monitor-threshold", "0", int(0, i64::MAX), Effect::LatencyTime),
    parameter("latency-tracking", "yes", Kind::YesOrNo, Effect::LatencyTracking),
    parameter("latency-tracking-info-percentiles", "50 99 99.9", Kind::Words, Effect::Constant),
    parameter("lazyfree-lazy-eviction", "no", Kind::YesOrNo, Effect::None),
    parameter("lazyfree-lazy-expire", "no", Kind::YesOrNo, Effect::None),
    parameter("lazyfree-lazy-server-del", "no", Kind::YesOrNo, Effect::None),
    parameter("lazyfree-lazy-user-del", "no", Kind::YesOrNo, Effect::None),
    parameter("lazyfree-lazy-user-flush", "no", Kind::YesOrNo, Effect::None),
    parameter("lfu-decay-time", "1", int(0, i32::MAX as i64), Effect::None),
    parameter("lfu-log-factor", "10", int(0, i32::MAX as i64), Effect::None),
    parameter("list-compress-depth", "0", int(0, i32::MAX as i64), Effect::None),
    parameter("list-max-listpack-size", "-2", int(i32::MIN as i64, i32::MAX as i64), Effect::None),
    parameter("list-max-ziplist-size", "-2", int(i32::MIN as i64, i32::MAX as i64), Effect::None),
    parameter("log-format", "text", Kind::Choice(&["text", "json"]), Effect::Fixed),
    parameter("loglevel", "notice", Kind::Choice(&["debug", "verbose", "notice", "warning"]), Effect::LogLevel),
    parameter("lua-time-limit", "5000", int(0, i64::MAX), Effect::BusyTime),
    parameter("maxclients", "10000", int(1, u32::MAX as i64), Effect::Clients),
    parameter("maxmemory", "0", ANY_BYTES, Effect::Memory),
    parameter("maxmemory-clients", "1073741824", ANY_BYTES, Effect::Backlogs),
    parameter("maxmemory-eviction-tenacity", "10", int(0, 100), Effect::None),
    parameter("maxmemory-policy", "noeviction", Kind::Choice(&EVICTION_POLICIES), Effect::None),
    parameter("maxmemory-samples", "5", int(1, i32::MAX as i64), Effect::None),
    parameter("memory", "0", ANY_BYTES, Effect::Fixed),
    parameter("notify-keyspace-events", "", Kind::Events, Effect::Events),
    parameter("ordered", "no", Kind::YesOrNo, Effect::Fixed),
    parameter("port", "0", int(0, 65_535), Effect::Fixed),
    parameter("protected-mode", "yes", Kind::YesOrNo, Effect::Protection),
    parameter("proto-max-bulk-len", "536870912", Kind::Bytes { min: 1 << 20, max: 1 << 30 }, Effect::BulkBytes),
    parameter("rdbcompression", "yes", Kind::YesOrNo, Effect::None),
    parameter("read-cache", "0", Kind::Bytes { min: 0, max: 1 << 37 }, Effect::Fixed),
    parameter("read-cache-threads", "0", int(0, 16), Effect::Fixed),
    parameter("requirepass", "", Kind::Text, Effect::Password),
    parameter("save", "", Kind::Words, Effect::None),
    parameter("set-max-intset-entries", "512", int(0, i64::MAX), Effect::None),
    parameter("slave-read-only", "yes", Kind::YesOrNo, Effect::Constant),
    parameter("slowlog-log-slower-than", "10000", int(-1, i64::MAX), Effect::SlowTime),
    parameter("slowlog-max-len", "128", int(0, 1 << 20), Effect::SlowCount),
    parameter("split", "beside", Kind::Split, Effect::Fixed),
    parameter("stop-writes-on-bgsave-error", "yes", Kind::YesOrNo, Effect::None),
    parameter("stream-node-max-bytes", "4096", int(0, i64::MAX), Effect::None),
    parameter("stream-node-max-entries", "100", int(0, i64::MAX), Effect::None),
    parameter("sync-interval", "100", int(1, 60_000), Effect::Fixed),
    parameter("tcp-keepalive", "300", int(0, i32::MAX as i64), Effect::KeepAlive),
    parameter("timeout", "0", int(0, i32::MAX as i64), Effect::IdleTime),
    parameter("tls-auth-clients", "no", Kind::Choice(&["no", "optional", "yes"]), Effect::Tls),
    parameter("tls-bind", "", Kind::Words, Effect::Fixed),
    parameter("tls-ca-cert-file", "", Kind::Text, Effect::Tls),
    parameter("tls-cert-file", "", Kind::Text, Effect::Tls),
    parameter("tls-key-file", "", Kind::Text, Effect::Tls),
    parameter("tls-port", "0", int(0, 65_535), Effect::Fixed),
    parameter("tracking-table-max-keys", "1000000", int(0, i64::MAX), Effect::TrackedKeys),
    parameter("unixsocket", "", Kind::Text, Effect::Fixed),
    parameter("unixsocketperm", "0", Kind::Octal { max: 0o777 }, Effect::Fixed),
    parameter("verify-reads", "values", Kind::Choice(&["nothing", "values", "absence"]), Effect::Fixed),
    parameter("zset-max-listpack-entries", "128", int(0, i64::MAX), Effect::None),
    parameter("zset-max-listpack-value", "64", int(0, i64::MAX), Effect::None),
    parameter("zset-max-ziplist-entries", "128", int(0, i64::MAX), Effect::None),
    parameter("zset-max-ziplist-value", "64", int(0, i64::MAX), Effect::None),
];

/// Older names of parameters, which have the same values.
const OLDER_NAMES: [(&str, &str); 6] = [
    ("hash-max-ziplist-entries", "hash-max-listpack-entries"),
    ("hash-max-ziplist-value", "hash-max-listpack-value"),
    ("list-max-ziplist-size", "list-max-listpack-size"),
    ("lua-time-limit", "busy-reply-threshold"),
    ("zset-max-ziplist-entries", "zset-max-listpack-entries"),
    ("zset-max-ziplist-value", "zset-max-listpack-value"),
];

/// Returns the index of the other name of a parameter that has two.
pub(crate) fn other_name(index: usize) -> Option<usize> {
    let name = PARAMETERS[index].name;
    let (older, newer) = OLDER_NAMES.into_iter().find(|(older, newer)| name == *older || name == *newer)?;
    by_name(if name == older { newer } else { older }.as_bytes())
}

/// Returns the index of the parameter with this name, ignoring case.
pub(crate) fn by_name(name: &[u8]) -> Option<usize> {
    PARAMETERS.iter().position(|known| known.name.as_bytes().eq_ignore_ascii_case(name))
}

impl Kind {
    /// Returns the value in canonical form, or an error in Redis' words.
    pub(crate) fn canonical(self, value: &[u8]) -> Result<String, String> {
        let text = String::from_utf8_lossy(value).into_owned();
        match self {
            Kind::Text | Kind::Words => Ok(text),
            Kind::YesOrNo => match text.to_ascii_lowercase().as_str() {
                known @ ("yes" | "no") => Ok(known.into()),
                _ => Err("argument must be 'yes' or 'no'".into()),
            },
            Kind::Choice(known) => match known.iter().find(|known| known.eq_ignore_ascii_case(&text)) {
                Some(known) => Ok((*known).into()),
                None => Err(format!("argument(s) must be one of the following: {}", known.join(", "))),
            },
            Kind::Integer { min, max } => {
                let number = resp::parse_integer(value).ok_or("argument couldn't be parsed into an integer")?;
                within(number, min, max)
            }
            Kind::Octal { max } => {
                let mode =
                    u32::from_str_radix(&text, 8).ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
                let mode = mode.ok_or("argument couldn't be parsed into an octal number")?;
                if mode > max {
                    return Err(format!("argument must be between 0 and {max:o} inclusive"));
                }
                Ok(format!("{mode:o}"))
            }
            Kind::Bytes { min, max } => within(bytes_of(&text).ok_or("argument must be a memory value")?, min, max),
            Kind::Split => text.to_ascii_lowercase().parse::<Sharing>().map(|sharing| sharing.to_string()),
            Kind::OutputLimits => match OutputLimits::default().with(&text) {
                Some(_) => Ok(text),
                None => Err("Wrong number of arguments in buffer limit configuration.".into()),
            },
            Kind::Events => match crate::observers::events::parse(value) {
                Some(classes) => Ok(crate::observers::events::text_of(classes)),
                None => Err("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.".into()),
            },
        }
    }
}

fn within<N: PartialOrd + std::fmt::Display>(number: N, min: N, max: N) -> Result<String, String> {
    if number < min || number > max {
        return Err(format!("argument must be between {min} and {max} inclusive"));
    }
    Ok(number.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_valid() {
        for parameter in &PARAMETERS {
            assert_eq!(parameter.kind.canonical(parameter.first.as_bytes()).as_deref(), Ok(parameter.first));
        }
        assert!(PARAMETERS.is_sorted_by_key(|parameter| parameter.name));
    }

    #[test]
    fn both_names_have_one_default() {
        for (index, parameter) in PARAMETERS.iter().enumerate() {
            let Some(other) = other_name(index) else { continue };
            assert_eq!(
                (PARAMETERS[other].first, other_name(other)),
                (parameter.first, Some(index)),
                "{}",
                parameter.name
            );
        }
        assert!(
            OLDER_NAMES
                .iter()
                .all(|(older, newer)| by_name(older.as_bytes()).and_then(other_name) == by_name(newer.as_bytes()))
        );
    }
}
