//! Parameters of Redis for which there is nothing here, so that a file made for Redis serves as it is.
//!
//! A parameter may be ignored only if no user misses it: it tunes something that hikv does not have, or says what is so anyway. A
//! parameter that would protect, listen, copy or keep something, and that is not known here, is an error: `rename-command`,
//! `unixsocket`, `replicaof`, `logfile`, `tls-protocols` and the like.

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
    "tracking-table-max-keys",
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
    ("syslog-enabled", "no"),
    ("tls-cluster", "no"),
    ("tls-replication", "no"),
];

/// Whether a line `name words…` of a file can be left aside.
pub(super) fn is_harmless(name: &str, words: &[String]) -> bool {
    let is_meant = |known: &str| known.strip_suffix('*').map_or(name == known, |start| name.starts_with(start));
    let value = words.join(" ");
    TUNING.iter().any(|known| is_meant(known)) || SO.contains(&(name, value.as_str()))
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
    fn what_tunes_or_is_so_is_ignored() {
        for line in ["tcp-backlog 511", "hash-max-listpack-entries 512", "daemonize no", "min-replicas-to-write 0"] {
            assert!(is_ignored(line), "{line}");
        }
    }

    #[test]
    fn what_would_protect_listen_copy_or_keep_is_not() {
        for line in [
            "rename-command CONFIG x",
            "unixsocket /run/redis.sock",
            "replicaof 10.0.0.1 6379",
            "slaveof 10.0.0.1 6379",
            "masterauth x",
            "logfile /var/log/redis.log",
            "pidfile /run/redis.pid",
            "daemonize yes",
            "supervised systemd",
            "min-replicas-to-write 1",
            "tls-protocols TLSv1.3",
            "tls-ciphers x",
            "tls-key-file-pass x",
            "loadmodule x.so",
            "enable-debug-command yes",
            "nonsense 1",
        ] {
            assert!(!is_ignored(line), "{line}");
        }
    }
}
