//! Tests `expire`, `ttl`, `persist` and `put --ttl`.

use crate::support::Place;

/// Returns the output of `ttl` in seconds.
fn ttl(place: &Place, key: &str) -> f64 {
    String::from_utf8(place.run("ttl", &[key]).succeeded()).unwrap().trim_end().parse().unwrap()
}

#[test]
fn key_keeps_its_ttl() {
    let place = Place::new();
    place.run("put", &["--ttl", "1000", "given", "v"]).succeeded();
    place.run_with_input("put", &["--ttl", "1000", "piped", "-"], b"v").succeeded();
    place.run("put", &["later", "v"]).succeeded();
    assert_eq!(place.run("ttl", &["later"]).succeeded(), b"unlimited\n");
    place.run("expire", &["later", "1000.5"]).succeeded();
    for key in ["given", "piped", "later"] {
        assert!((500.0..=1000.5).contains(&ttl(&place, key)));
        assert_eq!(place.run("get", &[key]).succeeded(), b"v");
        place.run("persist", &[key]).succeeded();
        assert_eq!(place.run("ttl", &[key]).succeeded(), b"unlimited\n");
    }
}

#[test]
fn expired_key_is_absent() {
    let place = Place::new();
    place.run("put", &["stays", "v"]).succeeded();
    place.run("put", &["--ttl", "0", "k", "v"]).succeeded();
    place.run("get", &["k"]).failed(1, &["'k'"]);
    place.run("ttl", &["k"]).failed(1, &["'k'"]);
    place.run("persist", &["k"]).failed(1, &["'k'"]);
    place.run("expire", &["k", "9"]).failed(1, &["'k'"]);
    place.run("del", &["k"]).failed(1, &["'k'"]);
    assert_eq!(place.run("dump", &["--bare"]).succeeded(), b"stays\tv\n");
    assert_eq!(place.run::<&str>("scan", &[]).succeeded(), b"stays\tv\n");
    place.run("expire", &["stays", "0"]).succeeded();
    place.run("get", &["stays"]).failed(1, &["'stays'"]);
}

#[test]
fn time_is_number_of_seconds() {
    let place = Place::new();
    place.run("put", &["k", "v"]).succeeded();
    for time in ["soon", "-1", "nan"] {
        let refused = place.run("expire", &["--", "k", time]);
        assert_eq!(refused.0.status.code(), Some(2));
        assert!(refused.messages().contains(time), "{}", refused.messages());
    }
}

#[test]
fn dump_and_load_keep_expiry() {
    let place = Place::new();
    place.run("put", &["--ttl", "1000", "small", "v"]).succeeded();
    place.run_with_input("put", &["--ttl", "1000", "large", "-"], &[7; 300_000]).succeeded();
    place.run("put", &["stays", "v"]).succeeded();
    let dumped = place.file("all.hikv");
    place.run("dump", &[dumped.to_str().unwrap(), "--bare"]).succeeded();
    let other = Place::new();
    other.run("load", &[&dumped]).succeeded();
    for key in ["small", "large"] {
        assert!((500.0..=1000.0).contains(&ttl(&other, key)));
    }
    assert_eq!(other.run("get", &["large"]).succeeded(), [7; 300_000]);
    assert_eq!(other.run("ttl", &["stays"]).succeeded(), b"unlimited\n");
}
