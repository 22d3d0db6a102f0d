//! Tests durability: the reported level, refused levels, and that a write is on the disk before its acknowledgement.

use std::fs;

use rustix::process::Signal;

use crate::serve::Serving;
use crate::strace::Strace;
use crate::support::{Place, hikv};

fn said(place: &Place) -> String {
    String::from_utf8(place.run("stats", &[""; 0]).succeeded()).unwrap()
}

#[test]
fn disk_store_is_journaled_by_default() {
    let place = Place::new();
    place.run("put", &["k", "v"]).succeeded();
    assert!(said(&place).contains("journaled"), "{}", said(&place));
    for level in ["power", "buffered", "process"] {
        place.run("put", &["--durability", level, "k", level]).succeeded();
        assert_eq!(place.run("get", &["k"]).succeeded(), level.as_bytes());
    }
    let direct = Place::new();
    direct.run("put", &["--durability", "process", "k", "v"]).succeeded();
    assert!(said(&direct).contains("a file in the page cache"), "{}", said(&direct));
    direct.run("put", &["--durability", "power", "k", "w"]).failed(2, &["process, not power", "without a journal"]);
    direct.run("put", &["--durability", "buffered", "k", "w"]).failed(2, &["process, not buffered"]);
    assert_eq!(direct.run("get", &["k"]).succeeded(), b"v");
}

#[test]
fn memory_gives_no_more_than_it_has() {
    Place::on_tmpfs(12, |place| {
        for (command, arguments) in [("put", &["k", "v"][..]), ("serve", &["--addr", "127.0.0.1:0"])] {
            let arguments = [&["--durability", "power"], arguments].concat();
            place.run(command, &arguments).failed(2, &["tmpfs", "process, not power"]);
        }
        place.run("put", &["--durability", "process", "k", "v"]).succeeded();
        assert!(said(place).contains("outlives the process but not the machine"), "{}", said(place));
    });
}

#[test]
fn reading_a_journaled_store_changes_no_file() {
    let place = Place::new();
    place.run("put", &["k", "v"]).succeeded();
    let contents = || ["store.hikv", "journal.hikv"].map(|name| fs::read(place.store().join(name)).unwrap());
    let before = contents();
    assert_eq!(place.run("get", &["k"]).succeeded(), b"v");
    place.run("check", &[""; 0]).succeeded();
    assert!(contents() == before, "a file has changed");
}

#[test]
fn journal_and_its_store_stay_together() {
    let place = Place::new();
    place.run("put", &["k", "v"]).succeeded();
    let [base, log, elsewhere] = ["store.hikv", "journal.hikv", "elsewhere"].map(|name| place.store().join(name));
    fs::rename(&log, &elsewhere).unwrap();
    place.run("get", &["k"]).failed(2, &["store.hikv", "journal is missing"]);
    place.run("put", &["k", "w"]).failed(2, &["store.hikv", "journal is missing"]);
    fs::rename(&elsewhere, &log).unwrap();
    fs::rename(&base, &elsewhere).unwrap();
    place.run("put", &["k", "w"]).failed(2, &["journal.hikv", "store.hikv", "missing"]);
    fs::rename(&elsewhere, &base).unwrap();
    let other = Place::new();
    other.run("put", &["k", "x"]).succeeded();
    fs::copy(other.store().join("journal.hikv"), &log).unwrap();
    place.run("get", &["k"]).failed(2, &["journal.hikv", "another store"]);
}

#[test]
fn journal_figures_and_interval_are_shown() {
    let place = Place::new();
    place.run("put", &["k", "v"]).succeeded();
    let fields = String::from_utf8(place.run("stats", &["--json"]).succeeded()).unwrap();
    for name in
        ["log_bytes", "log_max_bytes", "log_unapplied_bytes", "log_sync_count", "loaded_bytes", "replayed_bytes"]
    {
        assert!(fields.contains(&format!("\"{name}\":")), "{name} is missing in {fields}");
    }
    let arguments = ["--addr", "127.0.0.1:0", "--durability", "buffered", "--sync-interval", "25"];
    let serving = Serving::spawned(hikv("serve", &place.store(), &arguments));
    assert!(
        serving.banner().contains("a log of at most 256.00 MiB, a sync begins every 25 ms; "),
        "{}",
        serving.banner()
    );
    let request = b"INFO persistence\r\n";
    let length = String::from_utf8(serving.ask(request, 4)).unwrap();
    let answer = serving.ask(request, length.trim_start_matches('$').parse().unwrap());
    let answer = String::from_utf8_lossy(&answer);
    for line in ["durability:buffered", "sync_interval_ms:25", "log_max_bytes:268435456", "log_sync_count:"] {
        assert!(answer.contains(line), "{line} is missing in {answer}");
    }
    serving.stop(Signal::TERM);
    let refused = place.run("put", &["--sync-interval", "0", "k", "v"]);
    assert!(refused.messages().contains("'--sync-interval <MS>': 0 is not in 1..=60000"), "{}", refused.messages());
    Place::on_tmpfs(12, |place| {
        place.run("put", &["k", "v"]).succeeded();
        assert!(!said(place).contains("log_bytes"), "{}", said(place));
    });
}

/// Returns the lines of a trace, in the order in which the calls began or ended.
fn traced(place: &Place, request: &[u8], reply: &[u8]) -> Option<String> {
    let serving = Serving::spawned(hikv("serve", &place.store(), &["--addr", "127.0.0.1:0", "--threads", "1"]));
    let strace =
        Strace::attach(place, &serving, &["trace=read,recvfrom,write,writev,sendto,pwrite64,fdatasync,fsync"])?;
    assert_eq!(serving.ask(request, reply.len()), reply);
    serving.stop(Signal::INT);
    Some(strace.lines())
}

/// Shortens the lines for messages: each line of a trace contains all written bytes.
fn starts(trace: &str) -> String {
    trace.lines().map(|line| line.chars().take(120).chain(['\n']).collect::<String>()).collect()
}

#[test]
fn durable_set_is_synced_before_its_reply() {
    let place = Place::new();
    place.run("put", &["k", "v"]).succeeded();
    let Some(trace) = traced(&place, b"SET traced key\r\n", b"+OK\r\n") else { return };
    let line_with = |from: usize, words: &[&str]| {
        let found = trace.lines().skip(from).position(|line| words.iter().all(|word| line.contains(word)));
        from + found.unwrap_or_else(|| panic!("no {words:?} from line {from} on in:\n{}", starts(&trace)))
    };
    let request = line_with(0, &["SET traced key"]);
    let reply = line_with(request, &["+OK"]);
    let written = line_with(request, &["pwrite64(", "traced"]);
    let synced = line_with(written, &["fdatasync", "= 0"]);
    assert!(request < written && written < synced && synced < reply, "{written} {synced} {reply}:\n{}", starts(&trace));
}

/// A read of a value that is not yet durable, a transaction, and all later replies also wait for the sync.
#[test]
fn notifications_of_a_write_follow_sync() {
    let place = Place::new();
    place.run("put", &["k", "v"]).succeeded();
    let requests = b"SET traced key\r\nGET traced\r\nMULTI\r\nSET traced other\r\nEXEC\r\nECHO after\r\n";
    let replies = b"+OK\r\n$3\r\nkey\r\n+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n$5\r\nafter\r\n";
    let Some(trace) = traced(&place, requests, replies) else { return };
    let lines: Vec<&str> = trace.lines().collect();
    let request = lines.iter().position(|line| line.contains("SET traced key")).expect("the request is traced");
    let is_reply = |line: &&str| line.contains("+OK") || line.contains("$3") || line.contains("after");
    let reply = request + 1 + lines[request + 1..].iter().position(is_reply).expect("a reply is traced");
    let synced = lines[request..reply].iter().filter(|line| line.contains("fdatasync") && line.contains("= 0"));
    assert!(synced.count() > 0, "no sync comes before the first reply:\n{}", starts(&trace));
}

/// Returns the lines of `trace` in which one of `calls` succeeded, with their numbers.
fn ended<'t>(trace: &'t str, calls: &'t [&str]) -> impl Iterator<Item = (usize, &'t str)> {
    let is_of = |line: &str| {
        calls.iter().any(|call| line.contains(&format!("{call}(")) || line.contains(&format!("{call} resumed")))
    };
    trace.lines().enumerate().filter(move |(_, line)| is_of(line) && line.ends_with("= 0"))
}

#[test]
fn save_syncs_directory_after_each_rename() {
    let place = Place::new();
    place.run("put", &["k", "v"]).succeeded();
    let serving = Serving::spawned(hikv("serve", &place.store(), &["--addr", "127.0.0.1:0", "--threads", "1"]));
    let Some(strace) = Strace::attach(&place, &serving, &["trace=rename,renameat,renameat2,fsync"]) else { return };
    // The first creates the backup, the second replaces it. The third finds the remains of an interrupted one, and
    // renames them first.
    assert_eq!(serving.ask(b"SAVE\r\nSAVE\r\n", 10), b"+OK\r\n+OK\r\n");
    fs::rename(place.store().join("backup"), place.store().join("backup.new")).unwrap();
    assert_eq!(serving.ask(b"SAVE\r\n", 5), b"+OK\r\n");
    serving.stop(Signal::INT);
    let trace = strace.lines();
    let syncs_store = |line: &str| line.contains(&format!("<{}>)", place.store().canonicalize().unwrap().display()));
    let renames = || ended(&trace, &["rename", "renameat", "renameat2"]);
    let into_place = || renames().filter(|(_, line)| line.contains("backup\""));
    assert_eq!(into_place().count(), 4, "{trace}");
    for (number, line) in into_place() {
        let next = renames().map(|(other, _)| other).find(|other| *other > number).unwrap_or(usize::MAX);
        let synced = ended(&trace, &["fsync"]).any(|(at, line)| at > number && at < next && syncs_store(line));
        assert!(synced, "no sync of the directory follows {line}:\n{trace}");
    }
}

/// The store records that it was created on storage with stronger durability, as persistent memory would have.
#[test]
fn each_command_warns_of_lower_durability() {
    // The field of the region (docs/format/region.md).
    const MADE_FOR: std::ops::Range<usize> = 9_536..9_544;
    const POWER: u64 = 3;
    let place = Place::new();
    place.run("put", &["--durability", "process", "k", "1"]).succeeded();
    let file = place.store().join("store.hikv");
    let mut region = fs::read(&file).unwrap();
    region[MADE_FOR].copy_from_slice(&pmem::seal(POWER).to_le_bytes());
    fs::write(&file, region).unwrap();
    let items = place.write("items.tsv", "a\t1\n");
    let items = items.to_str().unwrap();
    let commands: [(&str, &[&str]); 7] = [
        ("put", &["k", "2"]),
        ("incr", &["k"]),
        ("cas", &["k", "3", "4"]),
        ("expire", &["k", "1000"]),
        ("persist", &["k"]),
        ("load", &[items]),
        ("del", &["k"]),
    ];
    for (command, arguments) in commands {
        place.run(command, arguments).failed(2, &["process, not power", "when the store was created"]);
        let ended = place.run(command, &[&["--durability", "process"], arguments].concat());
        let messages = ended.messages();
        ended.succeeded();
        let is_said = messages.contains("WARN writes survive less than the store was made for");
        assert!(is_said && messages.contains("made_for=power"), "{command}: {messages}");
    }
}
