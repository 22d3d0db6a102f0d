//! The paper's claims about its tables and figures. The figures are plots without numbers; the text makes the claims
//! about them.

use super::printed::{TABLE_1, TABLE_2, TABLE_3, TABLE_4};
use super::run;
use crate::paper::{Claim, Figure, Of, Paper, Part, Printed, Program, Ratio, Shown};
use crate::point::Points;

pub(super) const INSERT: &str = "insert";
pub(super) const INSERT_THREADS: &str = "insert-threads";
pub(super) const A_THREADS: &str = "a-threads";
pub(super) const B_THREADS: &str = "b-threads";
pub(super) const A_RECORDS: &str = "a-records";
pub(super) const B_RECORDS: &str = "b-records";
pub(super) const A_REQUESTS: &str = "a-requests";
pub(super) const B_REQUESTS: &str = "b-requests";
pub(super) const OUR_INSERT: &str = "our-insert";
pub(super) const OUR_A: &str = "our-a";
pub(super) const OUR_B: &str = "our-b";

pub(super) const ONE: &[f64] = &[1.0];
pub(super) const MORE_THREADS: &[f64] = &[2.0, 4.0, 8.0, 16.0];
pub(super) const THREADS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0];
pub(super) const RECORDS: &[f64] = &[5_000.0, 10_000.0, 20_000.0];
pub(super) const REQUESTS: &[f64] = &[5_000.0, 10_000.0];

/// All systems that can be measured.
pub(super) const SYSTEMS: &[&str] =
    &["pmekv-nvm", "pmekv-m", "pmekv-fs", "redis", "memcached", "rocksdb", "pmekv", "hikv", "rewo-hash", "ink"];
const NVM: &[&str] = &["pmekv-nvm"];
const M: &[&str] = &["pmekv-m"];
const FS: &[&str] = &["pmekv-fs"];
const REDIS: &[&str] = &["redis"];
const MEMCACHED: &[&str] = &["memcached"];
const ENGINE: &[&str] = &["pmekv"];

const fn of(workload: &'static [&'static str], systems: &'static [&'static str], at: &'static [f64]) -> Of {
    Of { workloads: workload, systems, at }
}

/// A system's time divided by PMEKV-NVM's.
const fn against(
    text: &'static str,
    (least, most): (f64, f64),
    system: &'static [&'static str],
    workload: &'static [&'static str],
    at: &'static [f64],
) -> Claim {
    Claim { text, least, most, ratio: Ratio { over: of(workload, system, at), under: of(workload, NVM, at) } }
}

/// A system's time divided by that of the engine in the caller's thread.
const fn against_engine(
    text: &'static str,
    (least, most): (f64, f64),
    system: &'static [&'static str],
    workload: &'static [&'static str],
    at: &'static [f64],
) -> Claim {
    Claim { text, least, most, ratio: Ratio { over: of(workload, system, at), under: of(workload, ENGINE, at) } }
}

/// A system's time per operation in one place divided by that in another.
const fn along(
    text: &'static str,
    printed: f64,
    system: &'static [&'static str],
    workload: &'static [&'static str],
    (over, under): (&'static [f64], &'static [f64]),
) -> Claim {
    let ratio = Ratio { over: of(workload, system, over), under: of(workload, system, under) };
    Claim { text, least: printed, most: printed, ratio }
}

/// From half of the requests to all.
const HALF_TO_ALL: (&[f64], &[f64]) = (&[5_000.0], &[10_000.0]);

/// The systems' gains in operations per second when the requests double.
const fn of_requests(workload: &'static [&'static str], printed: [f64; 4]) -> [Claim; 4] {
    let [nvm, fs, redis, memcached] = printed;
    [
        along("PMEKV-NVM, 5,000 requests / 10,000", nvm, NVM, workload, HALF_TO_ALL),
        along("PMEKV-FS, 5,000 requests / 10,000", fs, FS, workload, HALF_TO_ALL),
        along("Redis, 5,000 requests / 10,000", redis, REDIS, workload, HALF_TO_ALL),
        along("Memcached, 5,000 requests / 10,000", memcached, MEMCACHED, workload, HALF_TO_ALL),
    ]
}

/// The other systems' times divided by PMEKV-NVM's, and by those of the engine in the caller's thread.
const fn of_others(workload: &'static [&'static str], at: &'static [f64], printed: [(f64, f64); 3]) -> [Claim; 6] {
    let [fs, redis, memcached] = printed;
    [
        against("PMEKV-FS / PMEKV-NVM", fs, FS, workload, at),
        against("Redis / PMEKV-NVM", redis, REDIS, workload, at),
        against("Memcached / PMEKV-NVM", memcached, MEMCACHED, workload, at),
        against_engine("PMEKV-FS / the engine in the caller's thread", fs, FS, workload, at),
        against_engine("Redis / the engine in the caller's thread", redis, REDIS, workload, at),
        against_engine("Memcached / the engine in the caller's thread", memcached, MEMCACHED, workload, at),
    ]
}

/// Creates a figure that all systems share.
const fn figure(
    name: &'static str,
    title: &'static str,
    workloads: &'static [&'static str],
    (at, axis): (&'static [f64], &'static str),
    (claims, printed): (&'static [Claim], &'static [Printed]),
) -> Figure {
    Figure { name, title, workloads, at, axis, systems: SYSTEMS, shown: Shown::Rate, claims, printed, is_model: false }
}

const INTO_NEW_MEMORY: &str = "PMEKV-FS / the engine in the caller's thread, into new memory";

const HAND_OVER: &str = "a command goes from the caller's thread to a thread of the device and back, and both share two cores with the other \
    callers; waking a thread takes 30 µs on this machine (docs/performance/device.md), and the clients in the paper take 90 to 210 µs per operation \
    for all systems, which hides it. The rows 'the engine in the caller's thread' are the experiment: the same engine and records, without the \
    device.";
const NEW_MEMORY: &str = "1,000 inserts of 10 KB write 10 MB of memory that was never touched. The engine writes through a mapping, where each new \
    page costs a fault and is cleared first; `pwrite` to tmpfs takes whole pages without either. In YCSB, whose records exist, the fault is gone: see \
    the rows of tables 3 and 4 and figures 6 to 9.";
const IN_PLACE: &str = "PMEKV-FS overwrites a value in place, and a crash may tear it. The engine writes each value to a new place, and half of YCSB A's \
    requests are updates of 10 KB. In YCSB B on one thread, where updates are 5 %, the sign is the printed one. On several threads a turn takes 2 ms, \
    and rounds differ by up to two times: these rows need more requests (`--percent 1000`).";
const SERVERS: &str =
    "a request to Redis crosses a socket, which the paper's clients, at 90 to 210 µs per operation, hide.";
const START: &str = "the printed rates nearly double with the requests, so that twice the requests take 1.02 to 1.7 times as long: a fixed cost of the run \
    counts in them, in PMEKV-NVM's that of 40,000 requests. The clock here starts when the client is ready. Ratios below 1 are within the range of \
    the rounds, which differ by up to two times.";

/// The paper.
pub(crate) const PAPER: Paper = Paper {
    name: "pmekv",
    title: "A New Embedded Key-Value Store for NVM Device Simulator (Micromachines 2020)",
    remarks: &[
        "Keys have 16 bytes, the maximum in a command of an NVMe-KV device. The paper's records have values of 10 KB. The figures named 'our' \
         have values of 256 bytes, with --records records and --operations requests. A request's key is chosen by a Zipf distribution with \
         exponent 0.99; threads share the requests.",
        "PMEKV-NVM is the engine in an NVMe-KV device that shares memory with its hosts: one host per thread, one command at a time per host. \
         The device consists of threads of this process. PMEKV-M has a tree and values in main memory. PMEKV-FS has a tree in main memory and \
         values in a file, with pread and pwrite. Both overwrite the old value, so a crash may tear it. pmekv, hikv, rewo-hash and ink are the \
         library's engines in this process.",
        "All systems have their data in the directory, without added latency. Redis and Memcached keep nothing on disk and are reached through \
         Unix sockets. RocksDB has its log on, without syncs.",
        "Times include making the key and checking the value. A turn of the paper's size takes a few milliseconds: the time excludes the start \
         of its threads and includes the loading of caches. The paper's table 1 prints latencies in milliseconds; with its rates they can \
         only be microseconds.",
    ],
    not_built: &[
        ("mongodb", "its numbers are the paper's"),
        ("pmem-kv", "its numbers are the paper's"),
        ("pmem-redis", "its numbers are the paper's"),
        #[cfg(not(feature = "rocksdb"))]
        ("rocksdb", "build it with `--features rocksdb`, in half an hour"),
    ],
    programs: &[
        Program { system: "redis", command: "redis-server", package: "redis-server" },
        Program { system: "memcached", command: "memcached", package: "memcached" },
    ],
    figures: &[
        figure(
            "table-1",
            "1,000 inserts, one thread",
            &[INSERT],
            (ONE, "threads"),
            (
                &[
                    against("PMEKV-M / PMEKV-NVM", (0.99, 0.99), M, &[INSERT], ONE),
                    against("PMEKV-FS / PMEKV-NVM", (1.33, 1.33), FS, &[INSERT], ONE),
                    against("Redis / PMEKV-NVM", (1.06, 1.06), REDIS, &[INSERT], ONE),
                    against("Memcached / PMEKV-NVM", (2.62, 2.62), MEMCACHED, &[INSERT], ONE),
                    against_engine(INTO_NEW_MEMORY, (1.33, 1.33), FS, &[INSERT], ONE),
                ],
                TABLE_1,
            ),
        ),
        figure(
            "table-2",
            "1,000 inserts by number of threads",
            &[INSERT_THREADS],
            (MORE_THREADS, "threads"),
            (
                &[
                    against("PMEKV-FS / PMEKV-NVM", (1.37, 1.54), FS, &[INSERT_THREADS], MORE_THREADS),
                    against("Redis / PMEKV-NVM", (0.96, 1.03), REDIS, &[INSERT_THREADS], MORE_THREADS),
                    against("Memcached / PMEKV-NVM", (2.46, 3.29), MEMCACHED, &[INSERT_THREADS], MORE_THREADS),
                    against_engine(INTO_NEW_MEMORY, (1.37, 1.54), FS, &[INSERT_THREADS], MORE_THREADS),
                    along("PMEKV-NVM, 16 threads / 8", 1.16, NVM, &[INSERT_THREADS], (&[16.0], &[8.0])),
                ],
                TABLE_2,
            ),
        ),
        figure(
            "table-3",
            "YCSB A, 1,000 records and requests, by number of threads",
            &[A_THREADS],
            (THREADS, "threads"),
            (&of_others(&[A_THREADS], THREADS, [(1.12, 1.22), (1.01, 1.38), (3.34, 4.44)]), TABLE_3),
        ),
        figure(
            "table-4",
            "YCSB B, 1,000 records and requests, by number of threads",
            &[B_THREADS],
            (THREADS, "threads"),
            (&of_others(&[B_THREADS], THREADS, [(1.25, 1.41), (1.20, 1.68), (4.50, 8.17)]), TABLE_4),
        ),
        figure(
            "6",
            "YCSB A by number of records, one thread, 1,000 requests",
            &[A_RECORDS],
            (RECORDS, "records"),
            (&of_others(&[A_RECORDS], RECORDS, [(1.05, 1.11), (1.23, 1.35), (2.9, 3.5)]), &[]),
        ),
        figure(
            "7",
            "YCSB B by number of records, one thread, 1,000 requests",
            &[B_RECORDS],
            (RECORDS, "records"),
            (&of_others(&[B_RECORDS], RECORDS, [(1.20, 1.44), (1.64, 2.2), (4.1, 4.1)]), &[]),
        ),
        figure(
            "8",
            "YCSB A by number of requests, one thread, 1,000 records",
            &[A_REQUESTS],
            (REQUESTS, "requests"),
            (&of_requests(&[A_REQUESTS], [1.80, 1.97, 1.37, 1.21]), &[]),
        ),
        figure(
            "9",
            "YCSB B by number of requests, one thread, 1,000 records",
            &[B_REQUESTS],
            (REQUESTS, "requests"),
            (&of_requests(&[B_REQUESTS], [1.75, 1.95, 1.17, 1.25]), &[]),
        ),
        figure(
            "our-insert",
            "inserts with values of 256 bytes, by number of threads",
            &[OUR_INSERT],
            (THREADS, "threads"),
            (&[], &[]),
        ),
        figure(
            "our-a",
            "YCSB A with values of 256 bytes, by number of threads",
            &[OUR_A],
            (THREADS, "threads"),
            (&[], &[]),
        ),
        figure(
            "our-b",
            "YCSB B with values of 256 bytes, by number of threads",
            &[OUR_B],
            (THREADS, "threads"),
            (&[], &[]),
        ),
    ],
    modelled: &[],
    predict: |_| Points::default(),
    not_measured: &[],
    plan: &[
        Part { figures: &["table-1", "table-2"], seconds: 120 },
        Part { figures: &["table-3", "table-4", "8", "9"], seconds: 120 },
        Part { figures: &["6", "7"], seconds: 120 },
        Part { figures: &["our-insert"], seconds: 240 },
        Part { figures: &["our-a", "our-b"], seconds: 180 },
    ],
    causes: &[
        ("PMEKV-M / PMEKV-NVM", HAND_OVER),
        ("PMEKV-FS / PMEKV-NVM", HAND_OVER),
        ("Redis / PMEKV-NVM", HAND_OVER),
        ("Memcached / PMEKV-NVM", HAND_OVER),
        (INTO_NEW_MEMORY, NEW_MEMORY),
        ("PMEKV-FS / the engine in the caller's thread", IN_PLACE),
        ("Redis / the engine in the caller's thread", SERVERS),
        ("PMEKV-NVM, 16 threads / 8", HAND_OVER),
        ("PMEKV-NVM, 5,000 requests / 10,000", START),
        ("PMEKV-FS, 5,000 requests / 10,000", START),
        ("Redis, 5,000 requests / 10,000", START),
        ("Memcached, 5,000 requests / 10,000", START),
    ],
    run,
};
