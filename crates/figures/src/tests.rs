//! All figures of all papers, small: everything that is read is right, every claim has a figure, and the page stands by itself.

use std::path::PathBuf;

use super::*;

fn settings() -> Settings {
    Settings { dir: PathBuf::from("/dev/shm"), segments: 4, operations: 500, rounds: 2, read_block_ns: Some(0) }
}

#[test]
fn every_figure_is_measured_and_right() {
    let out = tempfile::tempdir().unwrap();
    let arguments = Arguments {
        paper: Some("rewo".to_owned()),
        figures: Vec::new(),
        list: false,
        settings: settings(),
        out: out.path().to_owned(),
    };
    assert_eq!(run(&arguments).unwrap(), 0);
    let page = fs::read_to_string(out.path().join("rewo.html")).unwrap();
    let names_outside = page.replace("http://www.w3.org/2000/svg", "").contains("://");
    assert!(!page.contains("not measured") && !names_outside, "{page}");
    assert!(page.matches("<svg").count() >= 10, "{page}");
    let json = fs::read_to_string(out.path().join("rewo.json")).unwrap();
    let point = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
    assert!(json.lines().skip(1).all(|line| point(line)["wrong"] == 0) && json.lines().count() > 100);
}

#[test]
fn what_is_not_there_is_refused() {
    assert!(Paper::named("nobody").is_err());
    assert!(Paper::named("rewo").unwrap().chosen(&["99".to_owned()]).is_err());
    assert_eq!(Paper::named("rewo").unwrap().chosen(&["9".to_owned()]).unwrap().len(), 1);
}

#[test]
fn nothing_is_no_measurement() {
    for none in [["--segments", "1"], ["--operations", "0"], ["--rounds", "0"]] {
        assert!(Arguments::try_parse_from(["figures", "rewo"].into_iter().chain(none)).is_err(), "{none:?}");
    }
}

#[test]
fn a_wrong_value_is_noticed() {
    let value = records::value(7, 3);
    assert!(
        records::is_value_of(7, &value) && !records::is_value_of(8, &value) && !records::is_value_of(7, &value[..10])
    );
    let mut torn = records::value(7, 4);
    torn[5..].copy_from_slice(&value[5..]);
    assert!(!records::is_value_of(7, &torn));
}
