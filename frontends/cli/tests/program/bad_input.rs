//! Tests wrong paths, sizes and arguments: each is an error, and nothing is created or lost.

use std::ffi::OsStr;
use std::fs::{self, File};

use crate::support::{Ended, Place, hikv, program};

const KEY_BYTES_MAX: usize = 65_535;
const VALUE_BYTES_MAX: u64 = 1 << 30;

#[test]
fn only_commands_that_store_make_a_store() {
    let place = Place::new();
    for (command, arguments) in [("get", &["k"][..]), ("del", &["k"]), ("dump", &[]), ("check", &[]), ("stats", &[])] {
        place.run(command, arguments).failed(2, &[place.store().to_str().unwrap()]);
        assert!(!place.store().exists(), "{command} made a store");
    }
}

#[test]
fn unusable_path_is_refused() {
    let place = Place::new();
    let file = place.write("file", "not a directory");
    let under = file.join("store");
    for (command, arguments) in [("put", &["k", "v"][..]), ("get", &["k"]), ("load", &["-"])] {
        let ended = Ended(hikv(command, &under, arguments).output().unwrap());
        ended.failed(2, &[under.to_str().unwrap()]);
    }
    assert_eq!(fs::read(file).unwrap(), b"not a directory");
}

#[test]
fn too_long_key_is_refused_with_length() {
    let place = Place::new();
    place.run("put", &[&"k".repeat(KEY_BYTES_MAX), "longest"]).succeeded();
    place.run("put", &[&"k".repeat(KEY_BYTES_MAX + 1), "v"]).failed(2, &["store", "65536", "65535"]);
    assert_eq!(place.run("get", &["k".repeat(KEY_BYTES_MAX)]).succeeded(), b"longest");
}

#[test]
fn too_long_value_is_refused_with_length() {
    let place = Place::new();
    place.run("put", &["k", "before"]).succeeded();
    let sparse = place.file("sparse");
    File::create(&sparse).unwrap().set_len(VALUE_BYTES_MAX + 1).unwrap();
    let from_file = [OsStr::new("k"), OsStr::new("--value-file"), sparse.as_os_str()];
    place.run("put", &from_file).failed(2, &["store", "1073741825", "1073741824"]);
    assert_eq!(place.run("get", &["k"]).succeeded(), b"before");
}

#[test]
fn missing_value_file_is_named_first() {
    let place = Place::new();
    place.run("put", &["k", "--value-file", "/no/such/file"]).failed(2, &["/no/such/file"]);
    assert!(!place.store().exists());
}

#[test]
fn unwritable_output_is_an_error() {
    let place = Place::new();
    place.run("put", &["k", &"v".repeat(100_000)]).succeeded();
    for (command, arguments) in [("get", &["k"][..]), ("dump", &[]), ("stats", &[]), ("check", &[])] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let ended = Ended(hikv(command, &place.store(), arguments).stdout(full).output().unwrap());
        ended.failed(2, &["No space left on device"]);
    }
    place.run("dump", &["/no/such/dir/items.tsv"]).failed(2, &["/no/such/dir/items.tsv"]);
}

#[test]
fn wrong_arguments_exit_with_2() {
    let place = Place::new();
    for arguments in [&["k"][..], &["k", "v", "w"], &["k", "v", "--value-file", "f"], &["k", "v", "--such"]] {
        assert_eq!(place.run("put", arguments).0.status.code(), Some(2), "{arguments:?}");
    }
    for arguments in
        [&["bench", "--dir", "x", "--seconds", "-1"][..], &["bench", "--dir", "x", "--records", "0"], &["get"]]
    {
        assert_eq!(program().args(arguments).output().unwrap().status.code(), Some(2), "{arguments:?}");
    }
    assert!(!place.store().exists());
}
