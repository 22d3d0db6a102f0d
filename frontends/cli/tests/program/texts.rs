//! Tests texts as editors and other systems write them, and times that are too long to record.

use std::fs;

use rustix::process::Signal;

use crate::removed::answered;
use crate::serve::Serving;
use crate::support::{Ended, Place, hikv};

const MARK: &str = "\u{feff}";

#[test]
fn byte_order_marks_are_skipped_everywhere() {
    for (name, text) in
        [("a.tsv", "key\tvalue\n"), ("a.csv", "key,value\n"), ("a.jsonl", "{\"key\":\"key\",\"value\":\"value\"}\n")]
    {
        let place = Place::new();
        place.run("load", &[place.write(name, [MARK, text].concat())]).succeeded();
        assert_eq!(place.run("get", &["key"]).succeeded(), b"value", "{name}");
    }
    let place = Place::new();
    let batch = place.write("b.tsv", [MARK, "put\tkey\tvalue\n"].concat());
    place.run("batch", &[batch]).succeeded();
    assert_eq!(place.run("get", &["key"]).succeeded(), b"value");
    let users = place.write("users", [MARK, "user default on nopass ~* &* +@all\n"].concat());
    let password = place.write("password", [MARK, "open\n"].concat());
    let config = place.write("config", [MARK, "maxclients 7\naclfile ", users.to_str().unwrap(), "\n"].concat());
    let serve = |arguments: &[&str]| {
        Serving::spawned(hikv(
            "serve",
            &place.store(),
            &[&["--addr", "127.0.0.1:0", "--threads", "1"], arguments].concat(),
        ))
    };
    let serving = serve(&["--config", config.to_str().unwrap()]);
    assert_eq!(serving.ask(b"CONFIG GET maxclients\r\n", 26), b"*2\r\n$10\r\nmaxclients\r\n$1\r\n7");
    serving.stop(Signal::TERM);
    let serving = serve(&["--password-file", password.to_str().unwrap()]);
    assert_eq!(answered(&serving, "AUTH open"), "+OK");
    serving.stop(Signal::TERM);
}

#[test]
fn utf_16_is_named() {
    let place = Place::new();
    let text = |text: &str| -> Vec<u8> { [MARK, text].concat().encode_utf16().flat_map(u16::to_le_bytes).collect() };
    for name in ["a.tsv", "a.csv", "a.jsonl"] {
        let file = place.write(name, text("key\tvalue\n"));
        place.run("load", &[file]).failed(2, &[name, "UTF-16", "iconv"]);
    }
    let config = place.write("config", text("maxclients 7\n"));
    let serve = hikv("serve", &place.store(), &["--config", config.to_str().unwrap()]).output().unwrap();
    Ended(serve).failed(2, &["config", "UTF-16", "iconv"]);
}

#[test]
fn times_beyond_counting_are_refused() {
    let place = Place::new();
    place.run("put", &["--ttl", "1e18", "k", "v"]).misused(&["1e18", "1000000000000000000 seconds"]);
    assert!(!place.store().exists());
    place.run("put", &["k", "v"]).succeeded();
    place.run("expire", &["k", "1e17"]).misused(&["1e17"]);
    for time in ["-1", "-0.5", "nan"] {
        place.run("put", &["k", "v", "--ttl", time]).misused(&["--ttl", "0 or more"]);
        place.run("expire", &["k", time]).misused(&["SECONDS", "0 or more"]);
    }
    place
        .run_with_input("batch", &[] as &[&str], b"put\tk\tv\t1e18\n")
        .failed(2, &["standard input:1: '1e18' seconds"]);
    let file = place.write("b.jsonl", "{\"op\":\"expire\",\"key\":\"k\",\"ttl\":1e18}\n");
    place.run("batch", &[file]).failed(2, &["b.jsonl:1: ttl 1000000000000000000"]);
    assert_eq!(place.run("ttl", &["k"]).succeeded(), b"unlimited\n");
}

#[test]
fn failed_starts_leave_nothing() {
    Place::on_tmpfs(64, |place| {
        place.run("put", &["--durability", "power", "k", "v"]).failed(2, &["power"]);
        assert!(!place.store().exists());
        fs::create_dir(place.store()).unwrap();
        place.run("put", &["--durability", "power", "k", "v"]).failed(2, &["power"]);
        assert_eq!(fs::read_dir(place.store()).unwrap().count(), 0);
    });
}

#[test]
fn unknown_figures_are_omitted() {
    let place = Place::new();
    let serving = Serving::start(&place);
    assert_eq!(answered(&serving, "SET k v"), "+OK");
    serving.signal(Signal::KILL);
    drop(serving.ended());
    let serving = Serving::start(&place);
    let banner = serving.banner().lines().next().unwrap().to_owned();
    serving.signal(Signal::TERM);
    let log = serving.ended().messages();
    let recovered = log.lines().find(|line| line.contains("recovered")).unwrap();
    assert!(!banner.contains("uncounted"), "{banner}");
    if recovered.contains("counted=false") {
        assert!(!recovered.contains("items=") && !recovered.contains("live_bytes="), "{recovered}");
        assert!(banner.ends_with("store"), "{banner}");
    }
}

#[test]
fn refusals_name_a_way_out() {
    let place = Place::new();
    let cases: [(&str, &[&str], &str); 11] = [
        ("serve", &["--addr", "nonsense"], "HOST:PORT"),
        ("serve", &["--http", "nonsense"], "HOST:PORT"),
        ("serve", &["--addr", "127.0.0.1:0", "--http-tls"], "give one with --http"),
        ("serve", &["--addr", "0.0.0.0:0"], "--password-file"),
        ("serve", &["--addr", "127.0.0.1:0", "--split", "2-1", "--threads", "2"], "omit --threads"),
        ("serve", &["--tls-addr", "127.0.0.1:0"], "--tls-cert"),
        ("serve", &["--tls-only"], "--tls-addr"),
        ("get", &["k"], "`hikv put`"),
        ("load", &["/dev/null"], "--format"),
        ("batch", &["--format", "tsv", "/no/such/file"], "/no/such/file"),
        ("bench", &["--dir", "/tmp", "--threads", "4", "--split", "3-2"], "--threads 5"),
    ];
    for (command, arguments, way) in cases {
        let mut program = crate::support::program();
        program.arg(command);
        if command != "bench" {
            program.arg(place.store());
        }
        Ended(program.args(arguments).output().unwrap()).failed(2, &[way]);
        assert!(!place.store().exists(), "{command} {arguments:?}");
    }
    place.run("put", &["k", "v"]).succeeded();
    fs::create_dir(place.file("there")).unwrap();
    place.run("backup", &[place.file("there")]).failed(2, &["name a new directory"]);
}
