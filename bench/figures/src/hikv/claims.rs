//! The paper's claims about its figures. The paper prints reductions of latency (83.2 % less is 5.95 times as much) and
//! improvements of rates (5.0 times better is 6 times as much).

use super::causes::{CAUSES, NOT_MEASURED};
use super::modelled::MODELLED;
use super::{PERSISTS_NS, READS_NS, dram, predicted, run, services, space};
use crate::paper::{Claim, Figure, Of, Paper, Part, Ratio, Shown};

pub(super) const HIKV: &[&str] = &["hikv"];
pub(super) const HIKV_SYNC: &[&str] = &["hikv-sync"];
pub(super) const NVSTORE: &[&str] = &["nvstore"];
pub(super) const FPTREE: &[&str] = &["fptree"];
pub(super) const FPTREE_C: &[&str] = &["fptree-c"];
pub(super) const ALL: &[&str] = &["hikv", "nvstore", "fptree", "fptree-c"];
const UNCACHED: &[&str] = &["hikv", "nvstore", "fptree"];
/// `hikv-sync` has two threads here, both of which serve and put keys in order.
const UNCACHED_AND_SYNC: &[&str] = &["hikv", "hikv-sync", "nvstore", "fptree"];
const ALL_AND_SYNC: &[&str] = &["hikv", "hikv-sync", "nvstore", "fptree", "fptree-c"];
const LATENCIES: [&str; 5] = ["get-latency", "put-latency", "update-latency", "delete-latency", "scan-latency"];
const RATES: [&str; 5] = ["get-rate", "put-rate", "update-rate", "delete-rate", "scan-rate"];
pub(super) const MIXES: [&str; 6] = ["ycsb-a", "ycsb-b", "ycsb-c", "ycsb-d", "ycsb-e", "ycsb-f"];

const ONE: &[f64] = &[1.0];
pub(super) const TWO: &[f64] = &[2.0];
const ONE_AND_TWO: &[f64] = &[1.0, 2.0];
/// The longest persist of figure 8.
const SLOWEST: &[f64] = &[1400.0];
/// The upper bound of a claim without a number.
const MORE: f64 = f64::INFINITY;

pub(super) const fn of(workloads: &'static [&'static str], systems: &'static [&'static str], at: &'static [f64]) -> Of {
    Of { workloads, systems, at }
}

pub(super) const fn claim(text: &'static str, (least, most): (f64, f64), over: Of, under: Of) -> Claim {
    Claim { text, least, most, ratio: Ratio { over, under } }
}

/// The time of a rival divided by HiKV's.
const fn rival(
    text: &'static str,
    printed: f64,
    system: &'static [&'static str],
    workload: &'static [&'static str],
    at: &'static [f64],
) -> Claim {
    claim(text, (printed, printed), of(workload, system, at), of(workload, HIKV, at))
}

/// The time of a rival divided by that of HiKV without a backend thread, on two threads.
const fn both(
    text: &'static str,
    printed: f64,
    system: &'static [&'static str],
    workload: &'static [&'static str],
    at: &'static [f64],
) -> Claim {
    claim(text, (printed, printed), of(workload, system, at), of(workload, HIKV_SYNC, at))
}

/// Two systems' times for all of the workloads, of which the first is greater.
const fn slower(
    text: &'static str,
    over: &'static [&'static str],
    under: &'static [&'static str],
    workloads: &'static [&'static str],
    at: &'static [f64],
) -> Claim {
    claim(text, (1.0, MORE), of(workloads, over, at), of(workloads, under, at))
}

/// The paper.
pub(crate) const PAPER: Paper = Paper {
    name: "hikv",
    title: "HiKV: A Hybrid Index Key-Value Store for DRAM-NVM Memory Systems (USENIX ATC 2017)",
    remarks: &[
        "Keys have 16 bytes and values 256 bytes. The paper loads 50 million pairs; --pairs sets the number here. Micro-benchmarks choose \
         keys uniformly, YCSB by a Zipf distribution with exponent 0.99; scans read 1 to 99 pairs.",
        "HiKV's writes run on one thread and one backend thread, those of the trees on two threads, as in the paper; gets and scans run on \
         one thread. Time that the backend thread needs after the last write does not count. Times include making the key and checking \
         the value.",
        "The memory is the directory's, with 600 ns added to each persist, that is to each fence; figures 8 and 10 vary this. In figure 12 a \
         line of 64 bytes that is in no emulated processor cache takes 60 ns more to read; a prefetched line arrives meanwhile.",
        "nvstore (NV-Tree), fptree and fptree-c (FPTree with a cache in DRAM) are written from their papers' descriptions. They use HiKV's \
         heap, records, checksums, hash and epochs. In place of transactional memory they use optimistic locks, as HiKV's own tree does.",
        "hikv-sync puts the keys in order before a write returns. The paper's variants with several trees and with a write-ahead log are not \
         built. Figure 7 has two threads; runs with more than this machine's cores are left out, and with them figures 9 and 11 and the claims \
         about 16 and 32 threads. Figure 9 also needs 250 million pairs.",
        "Recovery is the time until the store answers all operations, scans included, after its process has ended without closing it; HiKV's \
         tree in DRAM is built anew. Figure 13 loads the same number of bytes for each length of values.",
    ],
    not_built: &[],
    programs: &[],
    figures: &[
        Figure {
            name: "1",
            title: "indexes in DRAM, one thread",
            workloads: &dram::WORKLOADS,
            at: ONE,
            axis: "threads",
            systems: dram::SYSTEMS,
            shown: Shown::Rate,
            printed: &[],
            is_model: false,
            claims: &[
                claim(
                    "others / hash, all operations except scans: the hash index is fastest",
                    (1.0, MORE),
                    of(&["index-put", "index-get", "index-update", "index-delete"], &["skip-list", "b-tree"], ONE),
                    of(&["index-put", "index-get", "index-update", "index-delete"], &["hash"], ONE),
                ),
                claim(
                    "scan, hash / others: the hash index is far slower",
                    (1.0, MORE),
                    of(&["index-scan"], &["hash"], ONE),
                    of(&["index-scan"], &["skip-list", "b-tree"], ONE),
                ),
            ],
        },
        Figure {
            name: "5",
            title: "latency of single operations",
            workloads: &LATENCIES,
            at: ONE,
            axis: "threads",
            systems: ALL,
            shown: Shown::Latency,
            printed: &[],
            is_model: false,
            claims: &[
                rival("get, NVStore / HiKV: 83.2 % less", 5.95, NVSTORE, &["get-latency"], ONE),
                rival("get, FPTree / HiKV: 86.6 % less", 7.46, FPTREE, &["get-latency"], ONE),
                rival("put, NVStore / HiKV: 54.5 % less", 2.20, NVSTORE, &["put-latency"], ONE),
                rival("put, FPTree / HiKV: 68.8 % less", 3.21, FPTREE, &["put-latency"], ONE),
                rival("update, NVStore / HiKV: 58.4 % less", 2.40, NVSTORE, &["update-latency"], ONE),
                rival("update, FPTree / HiKV: 59.1 % less", 2.44, FPTREE, &["update-latency"], ONE),
                rival("delete, NVStore / HiKV: 65.3 % less", 2.88, NVSTORE, &["delete-latency"], ONE),
                rival("delete, FPTree / HiKV: 45.0 % less", 1.82, FPTREE, &["delete-latency"], ONE),
                rival("scan, NVStore / HiKV: 77.7 % less", 4.48, NVSTORE, &["scan-latency"], ONE),
                rival("scan, FPTree / HiKV: 28.3 % less", 1.39, FPTREE, &["scan-latency"], ONE),
                slower(
                    "FPTree-C / FPTree, single keys: the cache costs more than it saves",
                    FPTREE_C,
                    FPTREE,
                    &["get-latency", "put-latency", "update-latency", "delete-latency"],
                    ONE,
                ),
            ],
        },
        Figure {
            name: "6",
            title: "operations per second, the same runs",
            workloads: &RATES,
            at: ONE,
            axis: "threads",
            systems: ALL_AND_SYNC,
            shown: Shown::Rate,
            printed: &[],
            is_model: false,
            claims: &[
                rival("get, NVStore / HiKV: 5.0 times better", 6.0, NVSTORE, &["get-rate"], ONE),
                rival("get, FPTree / HiKV: 6.4 times better", 7.4, FPTREE, &["get-rate"], ONE),
                rival("put, NVStore / HiKV: 10.4 % better", 1.104, NVSTORE, &["put-rate"], ONE),
                rival("put, FPTree / HiKV: 55.9 % better", 1.559, FPTREE, &["put-rate"], ONE),
                rival("update, NVStore / HiKV: 19.6 % better", 1.196, NVSTORE, &["update-rate"], ONE),
                rival("update, FPTree / HiKV: 19.6 % better", 1.196, FPTREE, &["update-rate"], ONE),
                rival("delete, NVStore / HiKV: 43.2 % better", 1.432, NVSTORE, &["delete-rate"], ONE),
                rival("delete, FPTree / HiKV: 10.0 % worse", 0.9, FPTREE, &["delete-rate"], ONE),
                both("put, NVStore / HiKV, both threads serve", 1.104, NVSTORE, &["put-rate"], ONE),
                both("put, FPTree / HiKV, both threads serve", 1.559, FPTREE, &["put-rate"], ONE),
                both("update, NVStore / HiKV, both threads serve", 1.196, NVSTORE, &["update-rate"], ONE),
                both("update, FPTree / HiKV, both threads serve", 1.196, FPTREE, &["update-rate"], ONE),
                both("delete, NVStore / HiKV, both threads serve", 1.432, NVSTORE, &["delete-rate"], ONE),
                both("delete, FPTree / HiKV, both threads serve", 0.9, FPTREE, &["delete-rate"], ONE),
                rival("scan, NVStore / HiKV: 3.8 times better", 4.8, NVSTORE, &["scan-rate"], ONE),
                rival("scan, FPTree / HiKV: 41.2 % better", 1.412, FPTREE, &["scan-rate"], ONE),
            ],
        },
        Figure {
            name: "7",
            title: "YCSB A to F on one thread and two",
            workloads: &MIXES,
            at: ONE_AND_TWO,
            axis: "threads",
            systems: ALL,
            shown: Shown::Rate,
            printed: &[],
            is_model: false,
            claims: &[slower(
                "B and C, FPTree / FPTree-C: the cache pays with a skew",
                FPTREE,
                FPTREE_C,
                &["ycsb-b", "ycsb-c"],
                TWO,
            )],
        },
        Figure {
            name: "services",
            title: "operations within YCSB's mixes on one thread, the service times of the model",
            workloads: &services::ALL,
            at: ONE,
            axis: "threads",
            systems: ALL,
            shown: Shown::Latency,
            printed: &[],
            is_model: false,
            claims: &[],
        },
        Figure {
            name: "8",
            title: "operations per second by the latency of a persist",
            workloads: &["put-by-persist", "update-by-persist", "delete-by-persist"],
            at: &PERSISTS_NS,
            axis: "ns per persist",
            systems: UNCACHED_AND_SYNC,
            shown: Shown::Rate,
            printed: &[],
            is_model: false,
            claims: &[
                rival("put at 1,400 ns, NVStore / HiKV", 1.176, NVSTORE, &["put-by-persist"], &[1400.0]),
                rival("put at 1,400 ns, FPTree / HiKV", 1.329, FPTREE, &["put-by-persist"], &[1400.0]),
                rival("update at 1,400 ns, NVStore / HiKV", 1.8, NVSTORE, &["update-by-persist"], &[1400.0]),
                rival("update at 1,400 ns, FPTree / HiKV", 1.384, FPTREE, &["update-by-persist"], &[1400.0]),
                rival("delete at 1,400 ns, NVStore / HiKV", 1.399, NVSTORE, &["delete-by-persist"], &[1400.0]),
                rival("delete at 1,400 ns, FPTree / HiKV", 1.246, FPTREE, &["delete-by-persist"], &[1400.0]),
                both(
                    "put at 1,400 ns, NVStore / HiKV, both threads serve",
                    1.176,
                    NVSTORE,
                    &["put-by-persist"],
                    SLOWEST,
                ),
                both("put at 1,400 ns, FPTree / HiKV, both threads serve", 1.329, FPTREE, &["put-by-persist"], SLOWEST),
                both(
                    "update at 1,400 ns, NVStore / HiKV, both threads serve",
                    1.8,
                    NVSTORE,
                    &["update-by-persist"],
                    SLOWEST,
                ),
                both(
                    "update at 1,400 ns, FPTree / HiKV, both threads serve",
                    1.384,
                    FPTREE,
                    &["update-by-persist"],
                    SLOWEST,
                ),
                both(
                    "delete at 1,400 ns, NVStore / HiKV, both threads serve",
                    1.399,
                    NVSTORE,
                    &["delete-by-persist"],
                    SLOWEST,
                ),
                both(
                    "delete at 1,400 ns, FPTree / HiKV, both threads serve",
                    1.246,
                    FPTREE,
                    &["delete-by-persist"],
                    SLOWEST,
                ),
                claim(
                    "HiKV's delete, 1,000 ns / 50 ns: flat below 1,400 ns",
                    (1.0, 1.0),
                    of(&["delete-by-persist"], HIKV, &[1000.0]),
                    of(&["delete-by-persist"], HIKV, &[50.0]),
                ),
            ],
        },
        Figure {
            name: "10",
            title: "latency of put by the latency of a persist: order in the background, or before the put returns",
            workloads: &["put-latency-by-persist"],
            at: &PERSISTS_NS,
            axis: "ns per persist",
            systems: &["hikv", "hikv-sync"],
            shown: Shown::Latency,
            printed: &[],
            is_model: false,
            claims: &[claim(
                "HiKV-sync / HiKV: 46.7 to 57.8 % less",
                (1.88, 2.37),
                of(&["put-latency-by-persist"], HIKV_SYNC, &PERSISTS_NS),
                of(&["put-latency-by-persist"], HIKV, &PERSISTS_NS),
            )],
        },
        Figure {
            name: "12",
            title: "latency of reads by the latency of a line",
            workloads: &["get", "scan"],
            at: &READS_NS,
            axis: "ns per line",
            systems: ALL,
            shown: Shown::Latency,
            printed: &[],
            is_model: false,
            claims: &[
                rival("get at 120 ns, NVStore / HiKV: 80.0 % less", 5.0, NVSTORE, &["get"], &[120.0]),
                rival("get at 120 ns, FPTree / HiKV: 82.3 % less", 5.65, FPTREE, &["get"], &[120.0]),
                rival("scan at 120 ns, NVStore / HiKV: 61.8 % less", 2.62, NVSTORE, &["scan"], &[120.0]),
                rival("scan at 120 ns, FPTree / HiKV: 13.0 % less", 1.15, FPTREE, &["scan"], &[120.0]),
            ],
        },
        Figure {
            name: "13",
            title: "bytes per pair of DRAM and of persistent memory, by the length of values",
            workloads: &["dram", "nvm"],
            at: &space::VALUES,
            axis: "bytes of a value",
            systems: space::SYSTEMS,
            shown: Shown::Bytes,
            printed: &[],
            is_model: false,
            claims: &[
                claim(
                    "HiKV, DRAM / NVM at 64 bytes",
                    (0.40, 0.40),
                    of(&["dram"], HIKV, &[64.0]),
                    of(&["nvm"], HIKV, &[64.0]),
                ),
                claim(
                    "HiKV, DRAM / NVM at 256 bytes",
                    (0.158, 0.158),
                    of(&["dram"], HIKV, &[256.0]),
                    of(&["nvm"], HIKV, &[256.0]),
                ),
                claim(
                    "HiKV, DRAM / NVM at 1,024 bytes",
                    (0.04, 0.04),
                    of(&["dram"], HIKV, &[1024.0]),
                    of(&["nvm"], HIKV, &[1024.0]),
                ),
                claim(
                    "FPTree, DRAM / NVM at 256 bytes",
                    (0.004, 0.004),
                    of(&["dram"], FPTREE, &[256.0]),
                    of(&["nvm"], FPTREE, &[256.0]),
                ),
                claim(
                    "NVStore / HiKV, DRAM: 38.27 GB and 2.21 GB",
                    (17.3, 17.3),
                    of(&["dram"], NVSTORE, &[256.0]),
                    of(&["dram"], HIKV, &[256.0]),
                ),
            ],
        },
        Figure {
            name: "recovery",
            title: "time of opening after a crash, for each pair",
            workloads: &["recovery"],
            at: ONE,
            axis: "threads",
            systems: UNCACHED,
            shown: Shown::Latency,
            printed: &[],
            is_model: false,
            claims: &[
                claim(
                    "HiKV / NVStore: 88.24 s and 11.03 s for 50 million pairs",
                    (8.0, 8.0),
                    of(&["recovery"], HIKV, ONE),
                    of(&["recovery"], NVSTORE, ONE),
                ),
                claim(
                    "NVStore / FPTree: 11.03 s and 1.74 s",
                    (6.34, 6.34),
                    of(&["recovery"], NVSTORE, ONE),
                    of(&["recovery"], FPTREE, ONE),
                ),
            ],
        },
    ],
    modelled: MODELLED,
    predict: predicted::predict,
    not_measured: NOT_MEASURED,
    plan: &[
        Part { figures: &["1"], seconds: 60 },
        Part { figures: &["13"], seconds: 120 },
        Part { figures: &["recovery", "5", "6"], seconds: 240 },
        Part { figures: &["7", "services"], seconds: 300 },
        Part { figures: &["8", "10"], seconds: 420 },
        Part { figures: &["12"], seconds: 240 },
    ],
    causes: CAUSES,
    run,
};
