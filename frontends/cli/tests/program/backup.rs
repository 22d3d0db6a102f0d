//! Tests `backup` and `restore`: they leave a copy that opens as a store, or nothing.

use std::fs;

use hikv::Store;

use crate::support::{Place, hikv};

fn filled() -> Place {
    let place = Place::new();
    let file = place.write("items.tsv", (0..500).map(|i| format!("key-{i}\tvalue-{i}\n")).collect::<String>());
    place.run("load", &[&file]).succeeded();
    place
}

#[test]
fn backup_is_store_and_comes_back() {
    let place = filled();
    let (out, back) = (place.file("out"), place.file("back"));
    let ended = place.run("backup", &[&out]);
    assert!(ended.messages().contains("backed up 500 items"), "{}", ended.messages());
    assert!(!ended.messages().contains("WARN"), "{}", ended.messages());
    ended.succeeded();
    let got = hikv("get", &out, &["key-77"]).output().unwrap();
    assert_eq!(got.stdout, b"value-77");
    assert!(hikv("restore", &out, &[&back]).status().unwrap().success());
    let checked = hikv("check", &back, &[""; 0]).output().unwrap();
    assert_eq!(checked.stdout, b"500 items, no damage\n");
    assert!(!place.file("out.partial").exists() && !place.file("back.partial").exists());
}

/// Writing a copy causes no warning that the files of a store were moved.
#[test]
fn copies_warn_of_nothing() {
    let place = filled();
    for (command, arguments) in
        [("backup", &[][..]), ("restore", &[]), ("repair", &[]), ("convert", &["--engine", "pmekv"][..])]
    {
        let out = place.file(command);
        let ended = hikv(command, &place.store(), &[&[out.to_str().unwrap()], arguments].concat()).output().unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
        assert!(
            ended.status.success() && said.lines().count() == 1 && said.contains(" 500 items"),
            "{command}: {said}"
        );
    }
}

#[test]
fn nothing_is_overwritten() {
    let place = filled();
    let out = place.write("out", "a letter");
    place.run("backup", &[&out]).failed(2, &["out", "already exists"]);
    place.run("restore", &[&out]).failed(2, &["already exists"]);
    assert_eq!(fs::read(out).unwrap(), b"a letter");
}

#[test]
fn store_in_use_names_backup_command() {
    let place = filled();
    let store = Store::open(place.store()).unwrap();
    place.run("backup", &[place.file("out")]).failed(2, &["is in use by", "only that process"]);
    assert!(!place.file("out").exists());
    drop(store);
    place.run("backup", &[place.file("out")]).succeeded();
}

#[test]
fn damaged_backup_is_refused() {
    let place = filled();
    let region = place.store().join("store.hikv");
    let mut bytes = fs::read(&region).unwrap();
    let at = bytes.windows(9).position(|window| window == b"value-77\0").unwrap();
    bytes[at] ^= 1;
    fs::write(region, bytes).unwrap();
    place.run("restore", &[place.file("back")]).failed(1, &["store", "damaged in 1 place,", "nothing is restored"]);
    assert!(!place.file("back").exists() && !place.file("back.partial").exists());
    place.run("backup", &[place.file("back")]).failed(2, &["checksum"]);
    assert!(!place.file("back").exists() && !place.file("back.partial").exists());
}

#[test]
fn missing_store_is_not_made() {
    let place = Place::new();
    place.run("backup", &[place.file("out")]).failed(2, &["there is no store"]);
    place.run("restore", &[place.file("out")]).failed(2, &["there is no store"]);
    assert!(!place.store().exists() && !place.file("out").exists() && !place.file("out.partial").exists());
}
