//! Tests `check` and `repair`: damage is reported, undamaged items are salvaged, and the exit code shows losses.

use std::fs;

use crate::support::{Place, hikv};

const ITEM_COUNT: usize = 1_000;

fn filled() -> Place {
    let place = Place::new();
    let text: String = (0..ITEM_COUNT).map(|number| format!("key-{number}\tvalue-{number}-\\xff\n")).collect();
    place.run_with_input("load", &["-"], text.as_bytes()).succeeded();
    place
}

/// Changes bytes of the region.
fn alter(place: &Place, alter: impl FnOnce(&mut Vec<u8>)) {
    let region = place.store().join("store.hikv");
    let mut bytes = fs::read(&region).unwrap();
    alter(&mut bytes);
    fs::write(region, bytes).unwrap();
}

pub(crate) fn flip(place: &Place, text: &str) {
    alter(place, |bytes| {
        let at = bytes.windows(text.len()).position(|window| window == text.as_bytes()).unwrap();
        bytes[at] ^= 1;
    });
}

fn sorted(text: Vec<u8>) -> Vec<String> {
    let mut lines: Vec<String> = String::from_utf8(text).unwrap().lines().map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}

/// Returns the items of the store in `OUT`, as lines.
fn dumped(place: &Place) -> Vec<String> {
    let dump = hikv("dump", &place.file("out"), &["--bare"]).output().unwrap();
    assert!(dump.status.success());
    sorted(dump.stdout)
}

#[test]
fn whole_store_is_checked_and_copied() {
    let place = filled();
    for arguments in [&[][..], &["--deep"]] {
        assert_eq!(place.run("check", arguments).succeeded(), b"1000 items, no damage\n");
    }
    let ended = place.run("repair", &[place.file("out")]);
    assert!(ended.messages().contains("salvaged 1,000 items in "), "{}", ended.messages());
    assert_eq!(ended.succeeded(), b"1000 items, 0 mended, 0 doubtful, 0 lost\n");
    assert_eq!(dumped(&place), sorted(place.run("dump", &["--bare"]).succeeded()));
}

#[test]
fn damaged_value_is_refused_skipped_and_lost() {
    let place = filled();
    let expected = sorted(place.run("dump", &["--bare"]).succeeded());
    flip(&place, "value-77-");
    place.run("check", &[""; 0]).succeeded();
    place.run("check", &["--deep"]).failed(1, &["damaged in 1 place"]);
    place.run("get", &["key-77"]).failed(2, &["store: the store is damaged", "checksum"]);
    assert_eq!(place.run("get", &["key-77", "--verify", "nothing"]).succeeded().len(), "value-77-X".len());
    place.run("scan", &["--prefix", "key-77"]).failed(2, &["checksum"]);
    place.run("dump", &["--bare"]).failed(2, &["checksum", "--skip-damaged"]);
    place.run("backup", &[place.file("backup")]).failed(2, &["checksum"]);
    let list = place.file("lost.jsonl");
    let (out, listed) = (place.file("out"), list.to_str().unwrap());
    let ended = place.run("repair", &[out.to_str().unwrap(), "--lost", listed]);
    let printed = String::from_utf8(ended.0.stdout.clone()).unwrap();
    ended.failed(1, &["store: not everything could be salvaged"]);
    assert!(printed.contains("key 'key-77': an item's checksum does not match"), "{printed}");
    assert!(printed.ends_with("999 items, 0 mended, 0 doubtful, 1 lost\n"), "{printed}");
    let object: serde_json::Value = serde_json::from_slice(&fs::read(list).unwrap()).unwrap();
    assert_eq!((&object["finding"], &object["key"]), (&"lost".into(), &"key-77".into()));
    let others: Vec<_> = expected.into_iter().filter(|line| !line.starts_with("key-77\t")).collect();
    assert_eq!(dumped(&place), others);
    let skipping = place.run("dump", &["--bare", "--skip-damaged"]);
    assert_eq!(skipping.messages().matches("skipped at offset 0x").count(), 1, "{}", skipping.messages());
    assert_eq!(sorted(skipping.0.stdout.clone()), others);
    skipping.failed(1, &["store: skipped 1 damaged item"]);
    place.run("dump", &["--skip-damaged", place.file("items.hikv").to_str().unwrap()]).failed(1, &["1 damaged item"]);
    fs::remove_dir_all(place.store()).unwrap();
    place.run("load", &[place.file("items.hikv")]).succeeded();
    assert_eq!(sorted(place.run("dump", &["--bare"]).succeeded()), others);
}

#[test]
fn hidden_key_is_reported_by_dump() {
    let place = Place::new();
    place.run("put", &["key", "value", "--durability", "process"]).succeeded();
    let region = fs::read(place.store().join("store.hikv")).unwrap();
    let key = region.windows(3).position(|window| window == b"key").unwrap() as u64 - 16;
    let position = region.chunks(8).position(|word| word[..6] == key.to_le_bytes()[..6]).unwrap() * 8;
    alter(&place, |bytes| bytes[position - 32] ^= 1);
    place.run("get", &["key"]).failed(2, &["damaged", "signature"]);
    place.run("get", &["key", "--verify", "values"]).failed(1, &["key not found: 'key'"]);
    place.run("dump", &["--bare"]).failed(2, &["signature"]);
    let ended = place.run("check", &["--deep"]);
    let printed = String::from_utf8(ended.0.stdout.clone()).unwrap();
    for line in printed.lines() {
        assert!(line.starts_with("damage at offset 0x") && line.matches("offset").count() == 1, "{printed}");
    }
    ended.failed(1, &["store: damaged in "]);
}

#[test]
fn broken_pipe_changes_no_result() {
    let place = filled();
    flip(&place, "value-77-");
    let out = place.file("out");
    for (command, arguments) in [("check", vec!["--deep"]), ("repair", vec![out.to_str().unwrap()])] {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        drop(reader);
        let ended = hikv(command, &place.store(), &arguments).stdout(writer).output().unwrap();
        assert_eq!(ended.status.code(), Some(1), "{command}");
    }
    assert_eq!(dumped(&place).len(), ITEM_COUNT - 1);
    fs::remove_file(place.store().join("journal.hikv")).unwrap();
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    drop(reader);
    let whole = place.file("whole");
    let repair = hikv("repair", &place.store(), &[&whole]).stdout(writer).output().unwrap();
    assert!(repair.status.code() == Some(1) && whole.join("store.hikv").exists(), "{repair:?}");
}

#[test]
fn nothing_is_written_over_the_store() {
    let place = filled();
    let region = place.store().join("store.hikv");
    let (linked, named) = (place.file("linked.hikv"), place.file("named.hikv"));
    fs::hard_link(&region, &linked).unwrap();
    std::os::unix::fs::symlink(&region, &named).unwrap();
    let whole = fs::read(&region).unwrap();
    for file in [&region, &linked, &named] {
        place.run("dump", &[file]).failed(2, &["a file of the store itself"]);
        let arguments = [place.file("out"), "--lost".into(), file.clone()];
        place.run("repair", &arguments).failed(2, &["a file of the store itself"]);
        assert!(fs::read(&region).unwrap() == whole, "{file:?}");
    }
}

#[test]
fn one_is_not_several() {
    let place = Place::new();
    place.run("put", &["key", "value"]).succeeded();
    let ended = place.run("check", &[""; 0]);
    assert!(ended.messages().contains("checked 1 item in"), "{}", ended.messages());
    assert_eq!(ended.succeeded(), b"1 item, no damage\n");
}

#[test]
fn store_that_does_not_open_is_salvaged() {
    let place = filled();
    let expected = sorted(place.run("dump", &["--bare"]).succeeded());
    alter(&place, |bytes| bytes[65_536] ^= 1);
    place.run("check", &[""; 0]).failed(2, &["damaged at offset 0x10000"]);
    let printed = String::from_utf8(place.run("repair", &[place.file("out")]).succeeded()).unwrap();
    assert!(printed.starts_with("mended at offset 0x10000: "), "{printed}");
    assert_eq!(dumped(&place), expected);
}

#[test]
fn usage_error_exits_2_and_makes_nothing() {
    let place = filled();
    let out = place.file("out");
    place.run("repair", &[place.store()]).failed(2, &["store already exists"]);
    fs::create_dir(place.file("out.partial")).unwrap();
    fs::write(place.file("out.partial/store.hikv"), "").unwrap();
    place.run("repair", &[&out]).failed(2, &["out.partial is in the way", "no mark of an interrupted"]);
    fs::remove_dir_all(place.file("out.partial")).unwrap();
    alter(&place, |bytes| bytes.fill(7));
    place.run("repair", &[&out]).failed(2, &["nothing can be salvaged from", "store.hikv"]);
    fs::remove_file(place.store().join("store.hikv")).unwrap();
    place.run("repair", &[&out]).failed(2, &["no store at"]);
    assert!(!out.exists() && !place.file("out.partial").exists());
}

/// The killed repair left a mark that names the damaged store, and a region without its final name.
#[test]
fn killed_repair_blocks_no_later_one() {
    let place = filled();
    let expected = sorted(place.run("dump", &["--bare"]).succeeded());
    alter(&place, |bytes| bytes[65_536] ^= 1);
    fs::create_dir(place.file("out.partial")).unwrap();
    for (name, bytes) in [
        ("copy-of", &b"copy of 01234567-89ab-cdef-0123-456789abcdef\n"[..]),
        ("store.hikv.new", b"half a region"),
        ("lock", b""),
    ] {
        fs::write(place.file("out.partial").join(name), bytes).unwrap();
    }
    fs::create_dir(place.file("out")).unwrap();
    place.run("repair", &[place.file("out")]).succeeded();
    assert_eq!(dumped(&place), expected);
    assert!(!place.file("out.partial").exists());
}

/// The undamaged items of a damaged store, for each engine.
#[test]
fn damage_is_skipped_by_dump_and_conversion() {
    for engine in ["hikv", "rewo-hash", "ink", "pmekv"] {
        let place = Place::new();
        let text: String = (0..ITEM_COUNT).map(|number| format!("key-{number}\tthe value of {number}-\n")).collect();
        place.run_with_input("load", &["-", "--engine", engine], text.as_bytes()).succeeded();
        let mut expected = sorted(place.run("dump", &["--bare"]).succeeded());
        flip(&place, "the value of 77-");
        expected.retain(|line| !line.starts_with("key-77\t"));
        place.run("dump", &["--bare"]).failed(2, &["checksum", "--skip-damaged"]);
        let dump = hikv("dump", &place.store(), &["--bare", "--skip-damaged"]).output().unwrap();
        assert_eq!((dump.status.code(), sorted(dump.stdout)), (Some(1), expected.clone()), "{engine}");
        let out = place.file("out").into_os_string().into_string().unwrap();
        place.run("convert", &[&out, "--engine", "hikv"]).failed(1, &["is damaged", "--skip-damaged"]);
        assert!(!place.file("out").exists());
        let left = ["skipped 1 damaged item"];
        place.run("convert", &[&out, "--engine", "hikv", "--skip-damaged"]).failed(1, &left);
        assert_eq!(dumped(&place), expected, "{engine}");
    }
}
