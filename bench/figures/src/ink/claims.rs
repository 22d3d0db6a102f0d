//! The paper's claims about its figures.

use super::parts::{LOGGING, PARTS, SEARCHING};
use super::{ORDERS, PERCENTILES, THREADS, TIMES, run};
use crate::paper::{Claim, Figure, NotMeasured, Of, Paper, Part, Ratio, Shown};
use crate::point::Points;

pub(super) const INK: &[&str] = &["ink"];
pub(super) const INKS: &[&str] = &["ink", "ink-in-place"];
const ROCKSDB: &[&str] = &["rocksdb"];
pub(super) const INK_ROCKSDB: &[&str] = &["ink", "rocksdb"];
/// Systems that can also run on a disk without DAX.
pub(super) const BY_MEDIUM: &[&str] = &["ink", "ink-library", "rocksdb"];
const PMEMKV: &[&str] = &["pmemkv"];

pub(super) const BY_ORDER: [&str; 3] = ["read", "update", "insert"];
pub(super) const BY_PART: [&str; 3] = ["read-parts", "update-parts", "insert-parts"];
pub(super) const BY_THREADS: [&str; 3] = ["read-threads", "update-threads", "insert-threads"];
pub(super) const OF_FEW: [&str; 3] = ["read-few", "update-few", "insert-few"];
pub(super) const UNIFORM: [&str; 3] = ["a-uniform", "b-uniform", "c-uniform"];
pub(super) const ZIPFIAN: [&str; 3] = ["a-zipfian", "b-zipfian", "c-zipfian"];
/// A workload over time, on one thread and on four; then its slowest part, and its fastest.
pub(super) const OVER_TIME: [[&str; 3]; 6] = [
    ["a-time-1", "a-slowest-1", "a-fastest-1"],
    ["a-time-4", "a-slowest-4", "a-fastest-4"],
    ["b-time-1", "b-slowest-1", "b-fastest-1"],
    ["b-time-4", "b-slowest-4", "b-fastest-4"],
    ["c-time-1", "c-slowest-1", "c-fastest-1"],
    ["c-time-4", "c-slowest-4", "c-fastest-4"],
];
/// On one thread and on four.
pub(super) const TAILS: [&str; 2] = ["a-tails-1", "a-tails-4"];

/// The axis of a figure with one place.
const ONE: &[f64] = &[1.0];
/// The upper bound of a claim without a number.
const MORE: f64 = f64::INFINITY;

const fn of(workloads: &'static [&'static str], systems: &'static [&'static str], at: &'static [f64]) -> Of {
    Of { workloads, systems, at }
}

const fn claim(text: &'static str, (least, most): (f64, f64), over: Of, under: Of) -> Claim {
    Claim { text, least, most, ratio: Ratio { over, under } }
}

/// RocksDB's time divided by InK's.
const fn rocksdb(
    text: &'static str,
    printed: (f64, f64),
    workloads: &'static [&'static str],
    at: &'static [f64],
) -> Claim {
    claim(text, printed, of(workloads, ROCKSDB, at), of(workloads, INK, at))
}

/// pmemkv's time divided by InK's.
const fn pmemkv(text: &'static str, printed: f64, workloads: &'static [&'static str]) -> Claim {
    claim(text, (printed, printed), of(workloads, PMEMKV, ONE), of(workloads, INK, ONE))
}

/// The time of a system's slowest part divided by that of its fastest.
const fn unsteady(
    text: &'static str,
    printed: (f64, f64),
    system: &'static [&'static str],
    (slowest, fastest): (&'static [&'static str], &'static [&'static str]),
) -> Claim {
    claim(text, printed, of(slowest, system, ONE), of(fastest, system, ONE))
}

/// On one thread.
const ALONE: (&[&str], &[&str]) =
    (&["a-slowest-1", "b-slowest-1", "c-slowest-1"], &["a-fastest-1", "b-fastest-1", "c-fastest-1"]);
/// On four threads.
const TOGETHER: (&[&str], &[&str]) =
    (&["a-slowest-4", "b-slowest-4", "c-slowest-4"], &["a-fastest-4", "b-fastest-4", "c-fastest-4"]);

/// The paper.
pub(crate) const PAPER: Paper = Paper {
    name: "ink",
    title: "InK: In-Kernel Key-Value Storage with Persistent Memory (Electronics 2020)",
    remarks: &[
        "Keys have 23 bytes and values 100 bytes, as in the paper. InK is the engine in this process, not a system call of the kernel. Reads \
         and updates choose their keys by a Zipf distribution with exponent 0.99; inserts add new keys, 5 % of the pairs per turn.",
        "The memory is the directory's, without added latency; the paper used Optane. RocksDB has its files in the same directory and its log \
         on, without syncs, so the data of both survives the process. The comparison of DAX with a disk without it is \
         `cargo xtask kernel figure8`, in a guest; ink and ink-library map the file in both cases. The paper has 100 million pairs and up to \
         10 threads.",
        "Times include making the key and checking the value. Figure 7 sorts samples of the processor by the source file of the sampled \
         function; its parts add up to the time of an operation, and come from some dozens of samples per turn. Figure 12 reads a clock \
         twice per operation.",
        "ink stores a value in a new place and swaps the pointer; ink-in-place overwrites the old value with the help of the log, as in the \
         paper.",
    ],
    not_built: &[
        ("pmemkv", "its numbers are the published ones"),
        #[cfg(not(feature = "rocksdb"))]
        ("rocksdb", "build it with `--features rocksdb`, in half an hour"),
    ],
    programs: &[],
    figures: &[
        Figure {
            name: "6",
            title: "operations per second by order, one thread",
            workloads: &BY_ORDER,
            at: &ORDERS,
            axis: "order",
            systems: INKS,
            shown: Shown::Rate,
            printed: &[],
            is_model: false,
            claims: &[
                claim(
                    "read, order 7 / order 255",
                    (1.24, 1.24),
                    of(&["read"], INK, &[7.0]),
                    of(&["read"], INK, &[255.0]),
                ),
                claim(
                    "update in place, order 7 / order 255",
                    (1.22, 1.22),
                    of(&["update"], &["ink-in-place"], &[7.0]),
                    of(&["update"], &["ink-in-place"], &[255.0]),
                ),
                claim(
                    "insert, other orders / order 63: 63 is the best",
                    (1.0, MORE),
                    of(&["insert"], INK, &[7.0, 15.0, 31.0, 127.0, 255.0]),
                    of(&["insert"], INK, &[63.0]),
                ),
            ],
        },
        Figure {
            name: "7",
            title: "parts of an operation's time by order, one thread",
            workloads: &BY_PART,
            at: &ORDERS,
            axis: "order",
            systems: PARTS,
            shown: Shown::Latency,
            printed: &[],
            is_model: false,
            claims: &[
                claim(
                    "read, searching / searching at order 255: only the order decides",
                    (1.0, MORE),
                    of(&["read-parts"], &[SEARCHING], &[7.0, 15.0, 31.0, 63.0, 127.0]),
                    of(&["read-parts"], &[SEARCHING], &[255.0]),
                ),
                claim(
                    "searching, update / read: slightly longer",
                    (1.0, MORE),
                    of(&["update-parts"], &[SEARCHING], &ORDERS),
                    of(&["read-parts"], &[SEARCHING], &ORDERS),
                ),
                claim(
                    "insert, logging at order 255 / at order 63",
                    (1.0, MORE),
                    of(&["insert-parts"], &[LOGGING], &[255.0]),
                    of(&["insert-parts"], &[LOGGING], &[63.0]),
                ),
            ],
        },
        Figure {
            name: "8",
            title: "operations per second by number of threads",
            workloads: &BY_THREADS,
            at: &THREADS,
            axis: "threads",
            systems: BY_MEDIUM,
            shown: Shown::Rate,
            printed: &[],
            is_model: false,
            claims: &[
                rocksdb("read, RocksDB / InK: InK ahead by up to 220 %", (1.0, 3.2), &["read-threads"], &THREADS),
                rocksdb("update, RocksDB / InK: InK ahead by up to 270 %", (1.0, 3.7), &["update-threads"], &THREADS),
                claim(
                    "insert, InK / RocksDB: RocksDB ahead by up to 270 %",
                    (1.0, 3.7),
                    of(&["insert-threads"], INK, &THREADS),
                    of(&["insert-threads"], ROCKSDB, &THREADS),
                ),
            ],
        },
        Figure {
            name: "9",
            title: "few pairs, one thread, compared with pmemkv's published numbers",
            workloads: &OF_FEW,
            at: ONE,
            axis: "threads",
            systems: INK,
            shown: Shown::Latency,
            printed: &[],
            is_model: false,
            claims: &[
                pmemkv("insert, pmemkv / InK: InK 11.7 % below", 1.13, &["insert-few"]),
                pmemkv("update, pmemkv / InK: InK 30.3 % below", 1.43, &["update-few"]),
                pmemkv("read, pmemkv / InK: InK 26.9 % below", 1.37, &["read-few"]),
            ],
        },
        Figure {
            name: "10",
            title: "YCSB A, B and C, keys chosen uniformly and by a Zipf distribution",
            workloads: &["a-uniform", "a-zipfian", "b-uniform", "b-zipfian", "c-uniform", "c-zipfian"],
            at: ONE,
            axis: "threads",
            systems: INK_ROCKSDB,
            shown: Shown::Rate,
            printed: &[],
            is_model: false,
            claims: &[
                rocksdb("A, RocksDB / InK", (1.92, 1.92), &["a-uniform", "a-zipfian"], ONE),
                rocksdb("B, RocksDB / InK", (1.54, 1.54), &["b-uniform", "b-zipfian"], ONE),
                rocksdb("C, RocksDB / InK", (1.44, 1.44), &["c-uniform", "c-zipfian"], ONE),
                claim("InK, uniform / zipfian", (1.0, MORE), of(&UNIFORM, INK, ONE), of(&ZIPFIAN, INK, ONE)),
            ],
        },
        Figure {
            name: "11",
            title: "YCSB A, B and C over time, one thread and four",
            workloads: &["a-time-1", "a-time-4", "b-time-1", "b-time-4", "c-time-1", "c-time-4"],
            at: &TIMES,
            axis: "% of the operations",
            systems: INK_ROCKSDB,
            shown: Shown::Rate,
            printed: &[],
            is_model: false,
            claims: &[
                unsteady("InK, one thread, slowest part / fastest: consistent", (1.0, 1.0), INK, ALONE),
                unsteady("InK, four threads, slowest part / fastest: consistent", (1.0, 1.0), INK, TOGETHER),
                unsteady("RocksDB, one thread, slowest part / fastest: fluctuates", (1.0, MORE), ROCKSDB, ALONE),
                unsteady("RocksDB, four threads, slowest part / fastest: fluctuates", (1.0, MORE), ROCKSDB, TOGETHER),
            ],
        },
        Figure {
            name: "12",
            title: "percentiles of YCSB A, one thread and four",
            workloads: &TAILS,
            at: &PERCENTILES,
            axis: "percentile; 0: the average",
            systems: INK_ROCKSDB,
            shown: Shown::Latency,
            printed: &[],
            is_model: false,
            claims: &[
                claim(
                    "RocksDB's 90th percentile / InK's 99.9th: InK's worst is below",
                    (1.0, MORE),
                    of(&TAILS, ROCKSDB, &[90.0]),
                    of(&TAILS, INK, &[99.9]),
                ),
                claim(
                    "InK, 99.9th percentile / average: stable",
                    (1.0, MORE),
                    of(&TAILS, INK, &[99.9]),
                    of(&TAILS, INK, &[0.0]),
                ),
            ],
        },
    ],
    modelled: &[],
    predict: |_| Points::default(),
    not_measured: &[
        NotMeasured {
            text: "figure 8: 5 to 10 threads",
            printed: "InK ahead by up to 220 % and 270 %",
            why: "needs 10 cores; this machine has 2",
        },
        NotMeasured {
            text: "figure 8: a file system without DAX",
            printed: "InK ahead",
            why: "measured in a guest, by `cargo xtask kernel figure8`",
        },
    ],
    plan: &[
        Part { figures: &["6", "7"], seconds: 90 },
        Part { figures: &["8"], seconds: 180 },
        Part { figures: &["9"], seconds: 20 },
        Part { figures: &["10"], seconds: 120 },
        Part { figures: &["11", "12"], seconds: 150 },
    ],
    causes: &[
        (
            "InK, one thread, slowest part / fastest: consistent",
            "the slowest part is the first twentieth of the operations in 12 of 15 rounds (`ink.json`): the turns of other systems before \
             it have emptied the processor's caches. Most parts after it differ by less than 10 %.",
        ),
        (
            "InK, four threads, slowest part / fastest: consistent",
            "four threads share two cores here. A part of a thread takes twice as long while two other threads run; the same workloads on one \
             thread, in the row above, do not fluctuate like this.",
        ),
        (
            "insert, InK / RocksDB: RocksDB ahead by up to 270 %",
            "an insert of RocksDB writes DRAM and appends to a file; one of InK reads and writes its tree's nodes in persistent memory, which \
             here is as fast as DRAM, so that RocksDB's own work remains: a system call for each put, and its skip list.",
        ),
    ],
    run,
};
