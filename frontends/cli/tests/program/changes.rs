//! Tests `cas` and `incr`: writes that depend on the present value.

use crate::support::Place;

#[test]
fn value_is_replaced_if_expected() {
    let place = Place::new();
    place.run("put", &["k", "old"]).succeeded();
    place.run("cas", &["k", "old", "new"]).succeeded();
    place.run("cas", &["k", "old", "newer"]).failed(1, &["'k'", "does not have"]);
    place.run("cas", &["other", "", "new"]).failed(1, &["'other'"]);
    assert_eq!(place.run("get", &["k"]).succeeded(), b"new");
    place.run("cas", &["--delete", "k", "old"]).failed(1, &["'k'"]);
    place.run("cas", &["--delete", "k", "new"]).succeeded();
    place.run("get", &["k"]).failed(1, &["'k'"]);
}

#[test]
fn value_is_stored_if_there_is_none() {
    let place = Place::new();
    place.run("cas", &["--absent", "k", "first"]).succeeded();
    place.run("cas", &["--absent", "k", "second"]).failed(1, &["'k'", "exists already"]);
    assert_eq!(place.run("get", &["k"]).succeeded(), b"first");
}

#[test]
fn cas_needs_all_its_values() {
    let place = Place::new();
    place.run("put", &["k", "v"]).succeeded();
    for (arguments, named) in [
        (&["k", "v"][..], "OLD and NEW"),
        (&["--absent", "k"], "needs one value: NEW"),
        (&["--delete", "k", "v", "w"], "needs one value: OLD"),
        (&["--absent", "k", "v", "w"], "--absent"),
        (&["--absent", "--delete", "k", "v"], "--absent"),
    ] {
        let refused = place.run("cas", arguments);
        assert_eq!(refused.0.status.code(), Some(2));
        assert!(refused.messages().contains(named), "{}", refused.messages());
    }
}

#[test]
fn numbers_are_incremented() {
    let place = Place::new();
    place.run("put", &["text", "seven"]).succeeded();
    assert_eq!(place.run("incr", &["n"]).succeeded(), b"1\n");
    assert_eq!(place.run("incr", &["n", "41"]).succeeded(), b"42\n");
    assert_eq!(place.run("incr", &["n", "-50"]).succeeded(), b"-8\n");
    assert_eq!(place.run("get", &["n"]).succeeded(), b"-8");
    place.run("incr", &["text"]).failed(2, &["'seven'"]);
    place.run("incr", &["n", "-9223372036854775808"]).failed(2, &["-8", "64 bits"]);
}
