//! Tests `trees`, and `--tree` of the commands of keys.

use serde_json::{Value, json};

use crate::repair::flip;
use crate::support::{Place, program};

#[test]
fn commands_work_on_a_tree() {
    let place = Place::in_memory();
    place.run("put", &["k", "nameless"]).succeeded();
    place.run("put", &["--tree", "jobs", "k", "job"]).succeeded();
    assert_eq!(place.run("get", &["k"]).succeeded(), b"nameless");
    assert_eq!(place.run("get", &["--tree", "jobs", "k"]).succeeded(), b"job");
    place.run("cas", &["--tree", "jobs", "k", "job", "done"]).succeeded();
    assert_eq!(place.run("incr", &["--tree", "jobs", "count", "5"]).succeeded(), b"5\n");
    place.run("expire", &["--tree", "jobs", "count", "1000"]).succeeded();
    assert!(place.run("ttl", &["--tree", "jobs", "count"]).succeeded().starts_with(b"999."));
    place.run("persist", &["--tree", "jobs", "count"]).succeeded();
    assert_eq!(place.run("ttl", &["--tree", "jobs", "count"]).succeeded(), b"unlimited\n");
    place.run_with_input("batch", &["--tree", "jobs"], b"put\tbatched\t1\ndelete\tcount\n").succeeded();
    place.run_with_input("load", &["--tree", "jobs", "-"], b"loaded\t2\n").succeeded();
    assert_eq!(place.run("scan", &["--tree", "jobs"]).succeeded(), b"batched\t1\nk\tdone\nloaded\t2\n");
    assert_eq!(place.run("scan", &["--tree", "jobs", "--limit", "1"]).succeeded(), b"batched\t1\n");
    assert_eq!(place.run("scan", &[""; 0]).succeeded(), b"k\tnameless\n");
    place.run("del", &["--tree", "jobs", "k", "batched"]).succeeded();
    assert_eq!(place.run("dump", &["--tree", "jobs", "--bare"]).succeeded(), b"loaded\t2\n");
    place.run("get", &["--tree", "other", "k"]).failed(2, &["the store has no tree 'other'"]);
    place.run("put", &["--tree", "hikv:3", "k", "v"]).failed(2, &["hikv:3", "reserved"]);
}

#[test]
fn batch_changes_several_trees_at_once() {
    let place = Place::in_memory();
    let batch = |words: &[&str], input: &str| place.run_with_input("batch", words, input.as_bytes());
    batch(&[], "put\tk\tnameless\ntree\ttodo\nput\t1\tcat\nput\t2\tdog\ntree\nput\tn\t1\n").succeeded();
    let scan = |words: &[&str]| place.run("scan", words).succeeded();
    assert_eq!(scan(&[]), b"k\tnameless\nn\t1\n");
    assert_eq!(scan(&["--tree", "todo"]), b"1\tcat\n2\tdog\n");
    let moves = "expect\t1\tcat\ndelete\t1\ntree\trunning\nabsent\t1\nput\t1\tcat\n";
    batch(&["--tree", "todo"], moves).succeeded();
    assert_eq!((scan(&["--tree", "todo"]), scan(&["--tree", "running"])), (b"2\tdog\n".into(), b"1\tcat\n".into()));
    batch(&["--tree", "todo"], moves).failed(1, &["standard input:1"]);
    let lines =
        "{\"op\":\"delete\",\"key\":\"2\",\"tree\":\"todo\"}\n{\"op\":\"put\",\"key\":\"2\",\"value\":\"dog\"}\n";
    batch(&["--tree", "running", "--format", "jsonl"], lines).succeeded();
    assert_eq!(scan(&["--tree", "running"]), b"1\tcat\n2\tdog\n");
    assert_eq!(scan(&["--tree", "todo"]), b"");
    batch(&[], "tree\thikv:2\nput\tk\tv\n").failed(2, &["standard input:2", "reserved"]);
}

#[test]
fn lines_of_json_name_their_trees() {
    let place = Place::in_memory();
    let lines = r#"{"key":"k","value":"nameless"}
        {"tree":"a","key":"k","value":"of a"}
        {"key":"l","value":"2","tree":"b"}"#;
    place.run_with_input("load", &["--format", "jsonl", "-"], lines.as_bytes()).succeeded();
    assert_eq!(place.run("get", &["k"]).succeeded(), b"nameless");
    assert_eq!(place.run("get", &["--tree", "a", "k"]).succeeded(), b"of a");
    assert_eq!(place.run("trees", &[""; 0]).succeeded(), b"a\t1\nb\t1\n");
    let reserved = br#"{"tree":"hikv:1","key":"k","value":"v"}"#;
    place.run_with_input("load", &["--format", "jsonl", "-"], reserved).failed(2, &["standard input:1", "reserved"]);
}

#[test]
fn trees_are_listed_and_changed() {
    let place = Place::in_memory();
    place.run("trees", &["create", "x"]).failed(2, &["store"]);
    for (name, key) in [("a", "1"), ("a", "2"), ("b", "1")] {
        place.run("put", &["--tree", name, key, "v"]).succeeded();
    }
    let trees = |words: &[&str]| place.run("trees", words);
    assert_eq!(trees(&[]).succeeded(), b"a\t2\nb\t1\n");
    trees(&["create", "c"]).succeeded();
    trees(&["rename", "a", "z"]).succeeded();
    trees(&["swap", "z", "b"]).succeeded();
    assert_eq!(trees(&[]).succeeded(), b"b\t2\nc\t0\nz\t1\n");
    trees(&["clear", "b"]).succeeded();
    trees(&["drop", "z"]).succeeded();
    assert_eq!(trees(&[]).succeeded(), b"b\t0\nc\t0\n");
    trees(&["rename", "b", "c"]).failed(2, &["has a tree 'c' already"]);
    trees(&["drop", "z"]).failed(2, &["has no tree 'z'"]);
    trees(&["create", "hikv:x"]).failed(2, &["reserved"]);
    assert!(place.run("check", &["--deep"]).succeeded().len() < 1_000);
}

#[test]
fn binary_dump_has_all_trees() {
    let place = Place::in_memory();
    place.run("put", &["k", "nameless"]).succeeded();
    place.run("put", &["--tree", "a", "k", "of a"]).succeeded();
    let dump = place.file("all.hikv");
    place.run("dump", &[dump.as_os_str()]).succeeded();
    let copy = place.file("copy");
    let run =
        |words: &[&str]| program().args([words[0].as_ref(), copy.as_os_str()]).args(&words[1..]).output().unwrap();
    assert!(run(&["load", dump.to_str().unwrap()]).status.success());
    assert_eq!(run(&["get", "--tree", "a", "k"]).stdout, b"of a");
    assert_eq!(run(&["get", "k"]).stdout, b"nameless");
    assert_eq!(run(&["trees"]).stdout, b"a\t1\n");
    place.run("load", &[dump.as_os_str()]).failed(2, &["load it into a new one"]);
    let left_out = place.run("dump", &["--format", "tsv"]);
    assert!(String::from_utf8_lossy(&left_out.0.stderr).contains("1 named trees are not in this dump"));
}

#[test]
fn stats_show_keys_of_trees() {
    let place = Place::new();
    for (name, key) in [("a", "first-key"), ("a", "second-key"), ("b", "third-key")] {
        place.run("put", &["--tree", name, key, "v"]).succeeded();
    }
    let stats: Value = serde_json::from_slice(&place.run("stats", &["--json"]).succeeded()).unwrap();
    assert_eq!(stats["tree_items"], json!({ "a": 2, "b": 1 }));
    let text = String::from_utf8(place.run("stats", &[""; 0]).succeeded()).unwrap();
    let lines: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("tree_items")).map(str::trim).collect();
    assert_eq!(lines, ["a: 2", "b: 1"]);
    flip(&place, "second-key");
    let ended = place.run("stats", &["--json"]);
    assert!(ended.messages().contains("the keys of its trees cannot be counted: "), "{}", ended.messages());
    let stats: Value = serde_json::from_slice(&ended.succeeded()).unwrap();
    assert!(stats["tree_items"].is_null() && stats["medium"].is_string(), "{stats}");
}
