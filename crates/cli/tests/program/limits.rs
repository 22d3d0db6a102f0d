//! A process that may not have all it asks for: long files, many files, addresses. It says so, and nothing that was there is lost.

use std::process::Command;

use crate::support::{Ended, Place, hikv, left_out};

const KEPT_COUNT: u32 = 50;

/// A store, and a file of items that fill some 20 MB.
fn filled(level: &str) -> Place {
    let place = Place::new();
    let items = |range: std::ops::Range<u32>, bytes: usize| -> String {
        range.map(|i| format!("key-{i}\t{i:0bytes$}\n")).collect()
    };
    let kept = place.write("kept.tsv", items(0..KEPT_COUNT, 10));
    place.run("load", &["--durability", level, kept.to_str().unwrap()]).succeeded();
    place.write("more.tsv", items(KEPT_COUNT..9_000, 2_000));
    place
}

/// Runs `command` within a limit that `prlimit` sets: it ends by itself, with an error at the most. None where there is no
/// `prlimit`; else whether the limit was felt.
fn is_felt(limit: &str, command: &Command) -> Option<bool> {
    let mut limited = Command::new("prlimit");
    let Ok(ended) = limited.arg(limit).arg(command.get_program()).args(command.get_args()).output() else {
        left_out("there is no prlimit");
        return None;
    };
    let ended = Ended(ended);
    if ended.0.status.success() {
        return Some(false);
    }
    let code = ended.0.status.code();
    assert_eq!(code, Some(2), "{limit}: {:?} {}", ended.0.status, ended.messages());
    ended.failed(2, &[]);
    Some(true)
}

fn assert_kept(place: &Place) {
    place.run("check", &["--deep"]).succeeded();
    for i in 0..KEPT_COUNT {
        assert_eq!(place.run("get", &[format!("key-{i}")]).succeeded(), format!("{i:010}").as_bytes());
    }
    place.run("put", &["it", "goes on"]).succeeded();
}

#[test]
fn on_the_length_of_files() {
    for level in ["power", "process"] {
        let place = filled(level);
        let mut felt_count = 0;
        for kib in [0, 100, 4_096, 8_192, 9_000, 16_384] {
            let more = hikv("load", &place.store(), &[place.file("more.tsv")]);
            let Some(is_felt) = is_felt(&format!("--fsize={}", kib << 10), &more) else { return };
            felt_count += u32::from(is_felt);
            assert_kept(&place);
            let fresh = hikv("put", &place.file(&format!("{level}-{kib}")), &["--durability", level, "k", "v"]);
            self::is_felt(&format!("--fsize={}", kib << 10), &fresh);
        }
        assert!(felt_count >= 3, "{level}: {felt_count} were felt");
    }
}

#[test]
fn on_open_files() {
    let place = filled("power");
    let mut felt_count = 0;
    // With fewer its libraries cannot be loaded.
    for count in 4..32 {
        let Some(is_felt) = is_felt(&format!("--nofile={count}"), &hikv("put", &place.store(), &["k", "v"])) else {
            return;
        };
        felt_count += u32::from(is_felt);
        let fresh = hikv("put", &place.file(&count.to_string()), &["k", "v"]);
        self::is_felt(&format!("--nofile={count}"), &fresh);
    }
    assert!(felt_count >= 4, "{felt_count} were felt");
    assert_kept(&place);
}

#[test]
fn on_addresses() {
    for level in ["power", "process"] {
        let place = filled(level);
        let mut felt_count = 0;
        for mib in [256, 1_024, 2_048] {
            let more = hikv("load", &place.store(), &[place.file("more.tsv")]);
            let Some(is_felt) = is_felt(&format!("--as={}", mib << 20), &more) else { return };
            felt_count += u32::from(is_felt);
            assert_kept(&place);
        }
        assert!(felt_count >= 1, "{level}: {felt_count} were felt");
    }
}
