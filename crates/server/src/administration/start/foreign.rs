//! Parameters of Redis for which there is nothing here, so that a file made for Redis serves as it is.
//!
//! A parameter may be ignored only if no user misses the parameter: it tunes something that hikv does not have, or says what is so anyway. The
//! log names these at start in one line. Where a user may miss something ([`NOTED`]) the log says so in a line for each. A parameter that
//! would protect, copy or keep something, and that is not known here, is an error, which names the way out where there is one
//! ([`REFUSED`]).

/// Ignored whatever they say. A name that ends with `*` stands for all that begin so.
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

/// Ignored if they say this: it is so.
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

/// Accepted, with a line of the log that names the difference.
const NOTED: &[(&str, &str)] = &[
    ("appendfsync", "each write is durable before it is answered; --durability and --sync-interval say otherwise"),
    ("daemonize", "the server stays in the foreground: run it by a service manager (docs/deploying.md)"),
    ("logfile", "the log goes to standard error: have the service manager, or a pipe, keep it"),
    ("pidfile", "no such file is written: the service manager knows the process"),
    ("supervised", "a service manager is notified as systemd wants it, if it asks for that"),
    ("syslog-enabled", "the log goes to standard error: the journal, or a pipe to logger, keeps it"),
];

/// Refused, with the way out.
const REFUSED: &[(&str, &str)] = &[
    ("loadmodule", "there are no modules here: take the line out"),
    ("masterauth", "there is no replication here: take the line out"),
    ("masteruser", "there is no replication here: take the line out"),
    ("min-replicas-to-write", "there are no replicas here that could confirm a write: take the line out, or say 0"),
    (
        "rename-command",
        "no command has another name here: take it away from users by rules of the ACL (user default … -flushall)",
    ),
    ("replicaof", "there is no replication here: take the line out; `hikv backup` and SAVE make copies"),
    ("slaveof", "there is no replication here: take the line out; `hikv backup` and SAVE make copies"),
    ("tls-ciphers", "TLS 1.2 and 1.3 are served with the ciphers that rustls holds for safe: take the line out"),
    ("tls-ciphersuites", "TLS 1.2 and 1.3 are served with the ciphers that rustls holds for safe: take the line out"),
    (
        "tls-key-file-pass",
        "a key with a passphrase is not read: store it without one, readable by the server's user alone",
    ),
    ("tls-protocols", "TLS 1.2 and 1.3 are served, and no other version: take the line out"),
];

/// Whether a line `name words…` of a file can be left aside.
pub(super) fn is_harmless(name: &str, words: &[String]) -> bool {
    let is_meant = |known: &str| known.strip_suffix('*').map_or(name == known, |start| name.starts_with(start));
    let value = words.join(" ");
    TUNING.iter().any(|known| is_meant(known)) || SO.contains(&(name, value.as_str()))
}

/// The difference from what a parameter asks for, if the server starts all the same.
pub(super) fn note(name: &str) -> Option<&'static str> {
    NOTED.iter().find(|(known, _)| *known == name).map(|(_, note)| *note)
}

/// The reason for refusing a parameter that is not known here.
pub(super) fn refusal(name: &str) -> &'static str {
    REFUSED.iter().find(|(known, _)| *known == name).map_or("there is no such parameter", |(_, why)| why)
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
