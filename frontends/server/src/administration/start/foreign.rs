//! Redis parameters that do not apply here, so that a `redis.conf` can be used unchanged.
//!
//! A parameter is ignored only if no user misses it: it tunes a feature that hikv does not have, or asks for the
//! behaviour that hikv has anyway. One log line at start lists these. If a user may miss something ([`NOTED`]), the log
//! has one line for each. An unknown parameter that would protect, copy or keep something is an error, which names the
//! alternative if there is one ([`REFUSED`]).

/// Ignored with any value. A name that ends with `*` matches all names with this prefix.
const TUNING: &[&str] = &[
    "acllog-max-len",
    "active-defrag-*",
    "active-expire-effort",
    "activedefrag",
    "always-show-logo",
    "aof-*",
    "aof_rewrite_cpulist",
    "appenddirname",
    "appendfilename",
    "auto-aof-rewrite-*",
    "bgsave_cpulist",
    "bio_cpulist",
    "cluster-allow-*",
    "cluster-config-file",
    "cluster-link-sendbuf-limit",
    "cluster-migration-barrier",
    "cluster-node-timeout",
    "cluster-port",
    "cluster-replica-*",
    "cluster-require-full-coverage",
    "crash-log-enabled",
    "crash-memcheck-enabled",
    "dbfilename",
    "disable-thp",
    "dynamic-hz",
    "hash-max-*",
    "hll-sparse-max-bytes",
    "ignore-warnings",
    "io-threads-do-reads",
    "jemalloc-bg-thread",
    "lazyfree-lazy-*",
    "lfu-*",
    "list-*",
    "locale-collate",
    "maxmemory-eviction-tenacity",
    "maxmemory-samples",
    "no-appendfsync-on-rewrite",
    "oom-score-adj*",
    "proc-title-template",
    "rdb-*",
    "rdbchecksum",
    "rdbcompression",
    "repl-*",
    "replica-*",
    "sanitize-dump-payload",
    "server_cpulist",
    "set-max-*",
    "set-proc-title",
    "slave-*",
    "socket-mark-id",
    "stop-writes-on-bgsave-error",
    "stream-node-max-*",
    "tcp-backlog",
    "tls-prefer-server-ciphers",
    "tls-session-cach*",
    "zset-max-*",
];

/// Ignored with this value, because it describes the actual behaviour.
const SO: &[(&str, &str)] = &[
    ("daemonize", "no"),
    ("enable-debug-command", "no"),
    ("enable-module-command", "no"),
    ("enable-protected-configs", "no"),
    ("logfile", ""),
    ("min-replicas-to-write", "0"),
    ("pidfile", ""),
    ("supervised", "no"),
    ("supervised", "auto"),
    ("supervised", "systemd"),
    ("syslog-enabled", "no"),
    ("tls-cluster", "no"),
    ("tls-replication", "no"),
];

/// Accepted, with a log line that states the difference.
const NOTED: &[(&str, &str)] = &[
    ("appendfsync", "each write is durable before it is answered; change that with --durability and --sync-interval"),
    ("daemonize", "the server stays in the foreground; run it with a service manager (docs/deploying.md)"),
    ("logfile", "the log is written to standard error; store it with the service manager, or a pipe"),
    ("pidfile", "no PID file is written; the service manager tracks the process"),
    ("supervised", "systemd is notified automatically if it requests that"),
    ("syslog-enabled", "the log is written to standard error; store it with the journal, or a pipe to logger"),
];

/// Refused, with the alternative.
const REFUSED: &[(&str, &str)] = &[
    ("loadmodule", "modules are not supported; remove the line"),
    ("masterauth", "replication is not supported; remove the line"),
    ("masteruser", "replication is not supported; remove the line"),
    ("min-replicas-to-write", "replication is not supported; remove the line, or set it to 0"),
    ("rename-command", "commands cannot be renamed; forbid them with ACL rules (user default … -flushall)"),
    ("replicaof", "replication is not supported; remove the line, and make copies with `hikv backup` or SAVE"),
    ("slaveof", "replication is not supported; remove the line, and make copies with `hikv backup` or SAVE"),
    ("tls-ciphers", "TLS 1.2 and 1.3 use rustls' safe ciphers; remove the line"),
    ("tls-ciphersuites", "TLS 1.2 and 1.3 use rustls' safe ciphers; remove the line"),
    (
        "tls-key-file-pass",
        "keys with a passphrase are not supported; store the key without one, readable only by the server's user",
    ),
    ("tls-protocols", "only TLS 1.2 and 1.3 are supported; remove the line"),
];

/// Returns whether a line `name words…` can be ignored.
pub(super) fn is_harmless(name: &str, words: &[String]) -> bool {
    let is_meant = |known: &str| known.strip_suffix('*').map_or(name == known, |start| name.starts_with(start));
    let value = words.join(" ");
    TUNING.iter().any(|known| is_meant(known)) || SO.contains(&(name, value.as_str()))
}

/// Returns the difference from the requested behaviour, if the server starts anyway.
pub(super) fn note(name: &str) -> Option<&'static str> {
    NOTED.iter().find(|(known, _)| *known == name).map(|(_, note)| *note)
}

/// Returns the reason for refusing an unknown parameter.
pub(super) fn refusal(name: &str) -> &'static str {
    REFUSED.iter().find(|(known, _)| *known == name).map_or("unknown parameter", |(_, why)| why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_ignored(line: &str) -> bool {
        let mut words = line.split(' ').map(str::to_owned);
        let name = words.next().expect("a name");
        is_harmless(&name, &words.collect::<Vec<_>>())
    }

    #[test]
    fn tuning_directives_are_ignored() {
        for line in ["tcp-backlog 511", "hash-max-listpack-entries 512", "daemonize no", "min-replicas-to-write 0"] {
            assert!(is_ignored(line), "{line}");
        }
    }

    #[test]
    fn unsafe_foreign_directives_are_refused() {
        for line in [
            "rename-command CONFIG x",
            "replicaof 10.0.0.1 6379",
            "slaveof 10.0.0.1 6379",
            "masterauth x",
            "min-replicas-to-write 1",
            "tls-protocols TLSv1.3",
            "tls-ciphers x",
            "tls-key-file-pass x",
            "loadmodule x.so",
            "enable-debug-command yes",
            "nonsense 1",
        ] {
            let name = line.split(' ').next().expect("a name");
            assert!(!is_ignored(line) && note(name).is_none(), "{line}");
        }
    }
}
