//! Tests `check`, `stats` and `compact`: the reported state of a store, and its disk usage.

use std::fs;
use std::os::unix::fs::MetadataExt;

use serde_json::Value;

use crate::support::Place;

#[test]
fn sound_store_has_no_damage() {
    let place = Place::new();
    place.run_with_input("load", &["-"], b"a\t1\nb\t2\n").succeeded();
    let ended = place.run("check", &["--deep"]);
    assert!(ended.messages().contains("ordered 2 items in "), "{}", ended.messages());
    assert_eq!(ended.succeeded(), b"2 items, no damage\n");
}

#[test]
fn stats_are_one_json_object() {
    let place = Place::new();
    place.run_with_input("load", &["-"], b"a\t1\nb\t2\n").succeeded();
    let stats: Value = serde_json::from_slice(&place.run("stats", &["--json"]).succeeded()).unwrap();
    for name in ["engine", "medium", "durability"] {
        assert!(stats[name].is_string(), "{name}: {stats}");
    }
    for name in ["region_bytes", "live_bytes", "dram_bytes"] {
        assert!(stats[name].as_u64().is_some_and(|count| count > 0), "{name}: {stats}");
    }
    for (name, figure) in [("order_dram_bytes", 0), ("queued_count", 0), ("delta_count", 0), ("items", 2)] {
        assert_eq!(stats[name], figure, "{name}");
    }
    assert_eq!(stats["order"], "off", "no command has requested the order");
}

#[test]
fn stats_have_units_for_people() {
    let place = Place::new();
    place.run("put", &["a", "1"]).succeeded();
    let stats = String::from_utf8(place.run("stats", &[""; 0]).succeeded()).unwrap();
    let field = |name: &str| stats.lines().find(|line| line.starts_with(name)).unwrap_or_default();
    assert!(field("region_bytes").ends_with(" bytes)"), "{stats}");
    assert!(field("items").ends_with("  1"), "{stats}");
    assert!(field("order ").ends_with(" off"), "{stats}");
}

/// Returns the disk usage of the store's file.
fn allocated_bytes(place: &Place) -> u64 {
    fs::metadata(place.store().join("store.hikv")).unwrap().blocks() * 512
}

#[test]
fn compacted_store_is_smaller_and_equal() {
    let place = Place::new();
    let lines = |keys: &mut dyn Iterator<Item = u32>, value: &str| -> String {
        keys.map(|key| format!("{key}\t{value}\n")).collect()
    };
    // Replaces 49 of 50 long values by short ones: the remaining long values are spread over many chunks.
    place.run_with_input("load", &["-"], lines(&mut (0..20_000), &"x".repeat(900)).as_bytes()).succeeded();
    let replaced = lines(&mut (0..20_000).filter(|key| key % 50 > 0), "y");
    place.run_with_input("load", &["-"], replaced.as_bytes()).succeeded();
    let before_bytes = allocated_bytes(&place);
    let ended = place.run("compact", &["--progress-every", "0"]);
    assert!(ended.messages().contains("moved "), "{}", ended.messages());
    let said = String::from_utf8(ended.succeeded()).unwrap();
    assert!(said.ends_with(" items moved\n") && said.contains(" bytes before, "), "{said}");
    assert_eq!(place.run("check", &[""; 0]).succeeded(), b"20000 items, no damage\n");
    let stats: Value = serde_json::from_slice(&place.run("stats", &["--json"]).succeeded()).unwrap();
    let [region_bytes, used_bytes] = ["region_bytes", "used_bytes"].map(|name| stats[name].as_u64().unwrap());
    // Compaction does not free the space that the store keeps ahead: one or two steps of growth.
    let ahead_bytes = region_bytes - used_bytes;
    assert!(allocated_bytes(&place) <= before_bytes && allocated_bytes(&place) < ahead_bytes + (4 << 20), "{said}");
    assert_eq!(stats["allocated_bytes"], allocated_bytes(&place));
}

#[test]
fn compact_makes_no_store() {
    let place = Place::new();
    place.run("compact", &[""; 0]).failed(2, &["no store"]);
    assert!(!place.store().exists());
}
