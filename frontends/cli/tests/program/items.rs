//! Tests `put`, `get` and `del`.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::support::{Ended, Place, hikv};

/// Returns every byte that an argument may contain: all except NUL.
fn all_bytes() -> OsString {
    OsString::from_vec((1..=255).collect())
}

#[test]
fn put_value_is_read_back() {
    let place = Place::new();
    place.run("put", &["k", "v"]).succeeded();
    assert_eq!(place.run("get", &["k"]).succeeded(), b"v", "no line feed follows off a terminal");
    place.run("put", &["k", "new"]).succeeded();
    assert_eq!(place.run("get", &["k"]).succeeded(), b"new");
}

#[test]
fn keys_and_values_are_any_bytes() {
    let place = Place::new();
    place.run("put", &[all_bytes(), all_bytes()]).succeeded();
    assert_eq!(place.run("get", &[all_bytes()]).succeeded(), all_bytes().as_bytes());
}

#[test]
fn keys_and_values_may_be_empty() {
    let place = Place::new();
    place.run("put", &["", ""]).succeeded();
    assert_eq!(place.run("get", &[""]).succeeded(), b"");
    place.run("put", &["", "v"]).succeeded();
    assert_eq!(place.run("get", &[""]).succeeded(), b"v");
    place.run("del", &[""]).succeeded();
    place.run("get", &[""]).failed(1, &["''"]);
}

#[test]
fn keys_may_look_like_options() {
    let place = Place::new();
    place.run("put", &["--", "--help", "-v"]).succeeded();
    assert_eq!(place.run("get", &["--", "--help"]).succeeded(), b"-v");
    place.run("put", &["--", "--", "dashes"]).succeeded();
    assert_eq!(place.run("get", &["--", "--"]).succeeded(), b"dashes");
    place.run("del", &["--", "--help", "--"]).succeeded();
}

#[test]
fn value_is_read_from_pipe_or_file() {
    let place = Place::new();
    let value: Vec<u8> = (0..3 << 20).map(|place: u32| (place ^ place >> 11) as u8).collect();
    place.run_with_input("put", &["piped", "-"], &value).succeeded();
    assert_eq!(place.run("get", &["piped"]).succeeded(), value);
    let file = place.write("value", &value);
    place.run("put", &[OsStr::new("filed"), OsStr::new("--value-file"), file.as_os_str()]).succeeded();
    assert_eq!(place.run("get", &["filed"]).succeeded(), value);
    let redirected = hikv("put", &place.store(), &["redirected", "-"]).stdin(File::open(file).unwrap()).output();
    Ended(redirected.unwrap()).succeeded();
    assert_eq!(place.run("get", &["redirected"]).succeeded(), value);
    place.run_with_input("put", &["empty", "--value-file", "-"], b"").succeeded();
    assert_eq!(place.run("get", &["empty"]).succeeded(), b"");
}

#[test]
fn key_that_is_not_there_is_said() {
    let place = Place::new();
    place.run("put", &["k", "v"]).succeeded();
    place.run("get", &["a\tb"]).failed(1, &["store", "key not found: 'a\\tb'"]);
    place.run("del", &["k", "other"]).failed(1, &["key not found: 'other'"]);
    place.run("get", &["k"]).failed(1, &["key not found: 'k'"]);
}
