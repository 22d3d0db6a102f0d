//! `check` and `stats`: what a store says of itself.

use serde_json::Value;

use crate::support::Place;

#[test]
fn a_sound_store_has_no_damage() {
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
    assert_eq!(stats["order"], "off", "nobody has asked for it");
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
