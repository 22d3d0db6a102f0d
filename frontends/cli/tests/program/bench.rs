//! Tests `bench`: the form of its results, and that no store remains.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::{Ended, Place, program};

fn bench(place: &Place, options: &[&str]) -> Ended {
    let quick = ["--records", "300", "--seconds", "0.01"];
    let dir = place.file("bench");
    Ended(program().args(["bench", "--dir"]).arg(dir).args(quick).args(options).output().unwrap())
}

#[test]
fn each_workload_is_an_object_a_line() {
    let place = Place::in_memory();
    let workloads = "get,get_owned,get_with,miss,multiget,insert,update,delete,scan,insert-ordered,update-ordered,\
                     delete-ordered,ycsb-a,ycsb-b,ycsb-c,ycsb-d,ycsb-e,ycsb-f,transact,transact-parts,transact-read,\
                     transact-first";
    let out = bench(&place, &["--json", "--threads", "2", "--workloads", workloads]).succeeded();
    let lines = String::from_utf8(out).unwrap();
    let objects = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let rows: Vec<Value> = objects.filter(|object| object.get("workload").is_some()).collect();
    assert!(rows.iter().map(|row| row["workload"].as_str().unwrap()).eq(workloads.split(',')));
    for row in rows {
        assert_eq!(
            (row["threads"].as_u64(), row["records"].as_u64(), row["errors"].as_u64()),
            (Some(2), Some(300), Some(0))
        );
        for figure in ["ops_per_sec", "p50_us", "p99_us", "p999_us"] {
            assert!(row[figure].as_f64().is_some_and(|figure| figure > 0.0), "{figure}: {row}");
        }
    }
}

#[test]
fn rebuild_benchmark_uses_own_store() {
    let place = Place::in_memory();
    let out = bench(&place, &["--json", "--workloads", "rebuild,scan,rebuild,get"]).succeeded();
    let lines = String::from_utf8(out).unwrap();
    let rows: Vec<Value> = lines.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(rows.iter().map(|row| row["workload"].as_str().unwrap()).eq(["rebuild", "scan", "rebuild", "get"]));
    for row in &rows {
        assert!(row["ops_per_sec"].as_f64().is_some_and(|pace| pace > 0.0) && row["errors"] == 0, "{row}");
    }
    let is_kept = |row: &Value| row["queued_count"].is_u64();
    assert!(is_kept(&rows[1]) && !is_kept(&rows[3]), "{lines}");
}

#[test]
fn persists_reads_and_blocks_are_delayed() {
    let place = Place::in_memory();
    let slower = ["--persist-ns", "600", "--read-ns", "60", "--persist-block-ns", "20", "--read-block-ns", "100"];
    let with = |more: &[&'static str]| bench(&place, &[&slower[..], &["--workloads", "get,update"], more].concat());
    with(&["--block-bytes", "512"]).succeeded();
    with(&["--cache-bytes", "65536", "--memory-read-ns", "100", "--variant", "wal"]).succeeded();
    bench(&place, &["--workloads", "get", "--persist-ns"]).succeeded();
    let refused = with(&["--block-bytes", "300"]);
    refused.failed(2, &["delays by blocks of 300 bytes", "a power of two is wanted"]);
}

/// Workloads that write to the key order and read it.
const ORDERED: &str = "insert-ordered,delete-ordered,scan,ycsb-e";

#[test]
fn variants_are_measured_and_are_right() {
    let place = Place::in_memory();
    for variant in ["par", "wal"] {
        let out = bench(&place, &["--json", "--count", "--threads", "2", "--variant", variant, "--workloads", ORDERED]);
        let lines = String::from_utf8(out.succeeded()).unwrap();
        let rows: Vec<Value> = lines.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(rows.len(), 4, "{variant}");
        let fences = rows[1]["fences_per_op"].as_f64().unwrap();
        assert_eq!(fences.floor(), if variant == "wal" { 2.0 } else { 1.0 }, "{variant}: {fences} a delete");
    }
    bench(&place, &["--variant", "hash-only", "--workloads", "scan"])
        .failed(2, &["variant hash-only has no ordered scans, which scan needs"]);
    bench(&place, &["--variant", "wal", "--value-bytes", "4194300"]).failed(2, &["wal logs 4194304 bytes at most"]);
}

#[test]
fn options_unsupported_by_engine_are_refused() {
    let place = Place::in_memory();
    let refused = |options: &[&'static str], what: &[&str]| {
        let ended = bench(&place, options);
        assert_eq!(ended.0.stdout, b"", "nothing was measured before");
        ended.failed(2, what);
    };
    refused(&["--engine", "ink", "--variant", "wal"], &["variant wal", "engine hikv", "engine ink"]);
    refused(
        &["--engine", "rewo-hash", "--workloads", "get,scan"],
        &["engine rewo-hash has no order, which scan needs"],
    );
    refused(
        &["--engine", "rewo-hash", "--workloads", "insert-ordered"],
        &["rewo-hash has no order, which insert-ordered"],
    );
}

#[test]
fn figures_include_loop_and_machine_baselines() {
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let options = ["--json", "--records", "300", "--seconds", "0.01", "--workloads", "get,update,delete,ycsb-a"];
    let ended = program().args(["bench", "--dir"]).arg(memory.path()).args(options).output().unwrap();
    let lines = String::from_utf8(Ended(ended).succeeded()).unwrap();
    let rows: Vec<Value> = lines.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
    let figure = |row: &Value, name: &str| row[name].as_f64().unwrap_or_else(|| panic!("{name}: {row}"));
    for row in &rows {
        assert!(figure(row, "own_ns") > 0.0 && figure(row, "ns_per_op") > 0.0, "{row}");
    }
    for row in &rows[..3] {
        let times = figure(row, "ns_per_op") / figure(row, "bound_ns");
        assert!((figure(row, "times_bound") / times - 1.0).abs() < 1e-6, "{row}");
        assert!(figure(row, "bound_p999_us") > 0.0, "{row}");
    }
    assert!(rows[3]["times_bound"].is_null() && rows[3]["bound_p999_us"].is_null(), "a mix has no bound");
}

#[test]
fn calling_threads_are_split_as_asked() {
    let place = Place::in_memory();
    let split = |options: &[&'static str]| {
        let workloads = if options.contains(&"--workloads") { &[][..] } else { &["--workloads", ORDERED] };
        let out = bench(&place, &[&["--json"], workloads, options].concat()).succeeded();
        let last = String::from_utf8(out).unwrap().lines().last().map(str::to_owned).unwrap();
        let pool = serde_json::from_str::<Value>(&last).unwrap()["pool"].take();
        (!pool.is_null()).then(|| [&pool["serving"], &pool["backend"]].map(|count| count.as_u64().unwrap()))
    };
    assert_eq!(split(&["--threads", "4", "--split", "3-1"]), Some([3, 1]));
    assert_eq!(split(&["--threads", "4"]).map(|[serving, backend]| serving + backend), Some(4), "adaptive");
    assert!(split(&["--threads", "4", "--ordered", "--workloads", "update,get"]).is_some());
    assert_eq!(split(&["--threads", "1"]), None, "a thread alone has the store's own behind it");
    assert_eq!(split(&["--threads", "2", "--variant", "sync"]), None, "writers leave nothing to apply");
    assert_eq!(split(&["--threads", "2", "--variant", "sync", "--split", "1-1"]), Some([1, 1]));
    assert_eq!(split(&["--threads", "4", "--split", "beside", "--queues", "3", "--queue-bound", "64"]), None);
    bench(&place, &["--threads", "4", "--split", "3-2"]).failed(2, &["a split of 5 threads, but 4 calling threads"]);
    let refused = bench(&place, &["--split", "half"]);
    assert_eq!(refused.0.status.code(), Some(2));
    assert!(refused.messages().contains("'half' is no split"), "{}", refused.messages());
}

#[test]
fn nothing_is_left_behind_unless_asked_for() {
    let place = Place::in_memory();
    bench(&place, &["--workloads", "get"]).succeeded();
    assert_eq!(std::fs::read_dir(place.file("bench")).unwrap().count(), 0);
    bench(&place, &["--workloads", "get", "--keep"]).succeeded();
    let kept = std::fs::read_dir(place.file("bench")).unwrap().next().unwrap().unwrap().path();
    let stats = Ended(program().args(["stats", "--json"]).arg(kept).output().unwrap()).succeeded();
    assert_eq!(serde_json::from_slice::<Value>(&stats).unwrap()["items"], 300);
}

#[test]
fn store_in_directory_is_not_touched() {
    let place = Place::new();
    place.run("put", &["k", "v"]).succeeded();
    let dir = place.store();
    Ended(program().args(["bench", "--records", "10", "--seconds", "0", "--dir"]).arg(dir).output().unwrap())
        .succeeded();
    assert_eq!(place.run("dump", &["--bare"]).succeeded(), b"k\tv\n");
}

#[test]
fn an_interrupted_benchmark_leaves_nothing_behind() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        interrupt(signal, code);
    }
}

fn interrupt(signal: Signal, code: i32) {
    let place = Place::new();
    let dir = place.file("bench");
    let endless = ["--json", "--records", "300", "--seconds", "100000", "--workloads", "get,miss"];
    let mut command = program();
    command.args(["bench", "--dir"]).arg(&dir).args(endless).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut messages = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(messages.any(|line| line.contains("loaded 300 items")), "the workload never began");
    assert_ne!(std::fs::read_dir(&dir).unwrap().count(), 0);
    kill_process(Pid::from_child(&child), signal).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(code));
    assert_eq!(std::fs::read_dir(dir).unwrap().count(), 0);
    let rows: Vec<Value> = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .skip(1)
        .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
        .collect();
    // The signal may come before the first burst, and never after the first workload.
    assert!(rows.len() <= 1 && rows.iter().all(|row| row["workload"] == "get" && row["p50_us"].is_null()), "{rows:?}");
    assert!(messages.next().is_some_and(|line| line.contains("interrupted")), "it says why it ended");
}

#[test]
fn an_unknown_workload_is_refused() {
    let place = Place::new();
    let ended = bench(&place, &["--workloads", "get,guess"]);
    assert_eq!(ended.0.status.code(), Some(2));
    assert!(ended.messages().contains("unknown workload 'guess'"), "{}", ended.messages());
    assert!(!place.file("bench").exists());
}

#[test]
fn shared_prefix_must_leave_distinct_bytes() {
    let place = Place::new();
    let scanned = bench(&place, &["--json", "--workloads", "scan,ycsb-e", "--key-bytes", "40", "--shared-bytes", "24"]);
    assert!(String::from_utf8(scanned.succeeded()).unwrap().contains("\"errors\":0"));
    bench(&place, &["--key-bytes", "30", "--shared-bytes", "24"]).failed(2, &["30 bytes", "share 24"]);
}
