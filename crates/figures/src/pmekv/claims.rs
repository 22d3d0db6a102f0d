//! What the paper prints of its tables and figures. The figures are plots without numbers; claims about them stand in the text.

use super::printed::{TABLE_1, TABLE_2, TABLE_3, TABLE_4};
use super::run;
use crate::paper::{Claim, Figure, Of, Paper, Printed, Program, Ratio, Shown};

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

/// All that can be measured.
pub(super) const SYSTEMS: &[&str] =
    &["pmekv-nvm", "pmekv-m", "pmekv-fs", "redis", "memcached", "rocksdb", "pmekv", "hikv", "rewo-hash", "ink"];
const NVM: &[&str] = &["pmekv-nvm"];
const M: &[&str] = &["pmekv-m"];
const FS: &[&str] = &["pmekv-fs"];
const REDIS: &[&str] = &["redis"];
const MEMCACHED: &[&str] = &["memcached"];

const fn of(workload: &'static [&'static str], systems: &'static [&'static str], at: &'static [f64]) -> Of {
    Of { workloads: workload, systems, at }
}

/// How many times as long a system takes as PMEKV-NVM.
const fn against(
    text: &'static str,
    (least, most): (f64, f64),
    system: &'static [&'static str],
    workload: &'static [&'static str],
    at: &'static [f64],
) -> Claim {
    Claim { text, least, most, ratio: Ratio { over: of(workload, system, at), under: of(workload, NVM, at) } }
}

/// How many times as long an operation of a system takes in one place as in another.
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

/// From half as many requests to all.
const HALF_TO_ALL: (&[f64], &[f64]) = (&[5_000.0], &[10_000.0]);

/// How many times as many operations a second systems do of twice as many requests.
const fn of_requests(workload: &'static [&'static str], printed: [f64; 4]) -> [Claim; 4] {
    let [nvm, fs, redis, memcached] = printed;
    [
        along("PMEKV-NVM, 5,000 requests / 10,000", nvm, NVM, workload, HALF_TO_ALL),
        along("PMEKV-FS, 5,000 requests / 10,000", fs, FS, workload, HALF_TO_ALL),
        along("Redis, 5,000 requests / 10,000", redis, REDIS, workload, HALF_TO_ALL),
        along("Memcached, 5,000 requests / 10,000", memcached, MEMCACHED, workload, HALF_TO_ALL),
    ]
}

/// How many times as long others take as PMEKV-NVM.
const fn of_others(workload: &'static [&'static str], at: &'static [f64], printed: [(f64, f64); 3]) -> [Claim; 3] {
    let [fs, redis, memcached] = printed;
    [
        against("PMEKV-FS / PMEKV-NVM", fs, FS, workload, at),
        against("Redis / PMEKV-NVM", redis, REDIS, workload, at),
        against("Memcached / PMEKV-NVM", memcached, MEMCACHED, workload, at),
    ]
}

/// A figure, but for what is claimed of it.
const fn figure(
    name: &'static str,
    title: &'static str,
    workloads: &'static [&'static str],
    (at, axis): (&'static [f64], &'static str),
    (claims, printed): (&'static [Claim], &'static [Printed]),
) -> Figure {
    Figure { name, title, workloads, at, axis, systems: SYSTEMS, shown: Shown::Rate, claims, printed }
}

/// The paper.
pub(crate) const PAPER: Paper = Paper {
    name: "pmekv",
    title: "A New Embedded Key-Value Store for NVM Device Simulator (Micromachines 2020)",
    remarks: &[
        "Keys have 16 bytes, which is what a device's command has room for. The paper's records have values of 10 KB, ours of 256 bytes: as \
         many as --records says, and --operations requests. A request's key is chosen by a Zipf distribution of .99; threads share the requests.",
        "PMEKV-NVM is the engine in a device that hosts share memory with, one for each thread and one command at a time; the device is \
         threads of this process. PMEKV-M is a tree and values in main memory, and PMEKV-FS a tree in main memory and values in a file by \
         pread and pwrite; both write over the old value, and a crash may tear it. pmekv, hikv, rewo-hash and ink are the library's engines in this process.",
        "All have their data in the directory, a memory as it is. Redis and Memcached keep nothing on disk, and are asked by Unix sockets. \
         RocksDB has its log on, without syncs.",
        "Making a key and checking a value is in the time. A turn of the paper's size is over in some milliseconds: its threads' start is \
         not in the time, but what is to be loaded into caches is. Its table 1 gives latencies in milliseconds, of which its rates leave room for microseconds alone.",
    ],
    not_built: &[
        ("mongodb", "its numbers are the paper's"),
        ("pmem-kv", "its numbers are the paper's"),
        ("pmem-redis", "its numbers are the paper's"),
        #[cfg(not(feature = "rocksdb"))]
        ("rocksdb", "cargo xtask figures --features rocksdb pmekv builds it, in half an hour of processor time"),
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
            "inserts of our size, by number of threads",
            &[OUR_INSERT],
            (THREADS, "threads"),
            (&[], &[]),
        ),
        figure("our-a", "YCSB A of our size, by number of threads", &[OUR_A], (THREADS, "threads"), (&[], &[])),
        figure("our-b", "YCSB B of our size, by number of threads", &[OUR_B], (THREADS, "threads"), (&[], &[])),
    ],
    run,
};
