//! Tests `batch`: all operations are applied, or none.

use crate::support::Place;

#[test]
fn operations_are_carried_out_together() {
    let place = Place::new();
    place.run("put", &["old", "1"]).succeeded();
    place.run("put", &["kept", "1"]).succeeded();
    let input = b"put\tnew\ttab \\t in it\nput\tshort\tv\t1000\ndelete\told\nexpire\tkept\t500\nput\tnew\tlast\n";
    assert_eq!(place.run_with_input("batch", &[] as &[&str], input).succeeded(), b"");
    assert_eq!(place.run("get", &["new"]).succeeded(), b"last");
    place.run("get", &["old"]).failed(1, &["'old'"]);
    for (key, most) in [("short", 1000.0), ("kept", 500.0)] {
        let left: f64 = String::from_utf8(place.run("ttl", &[key]).succeeded()).unwrap().trim().parse().unwrap();
        assert!(left <= most && left > most - 100.0, "{key}: {left}");
    }
    let file =
        place.write("operations.jsonl", "{\"op\":\"persist\",\"key\":\"kept\"}\n{\"op\":\"delete\",\"key\":\"new\"}\n");
    place.run("batch", &[file]).succeeded();
    assert_eq!(place.run("ttl", &["kept"]).succeeded(), b"unlimited\n");
    place.run("get", &["new"]).failed(1, &["'new'"]);
}

#[test]
fn line_that_is_wrong_leaves_nothing_done() {
    let place = Place::new();
    place.run("put", &["k", "before"]).succeeded();
    let too_long = format!("put\tk\tv\nput\t{}\tv\n", "x".repeat(65_536));
    for (input, code, words) in [
        ("put\tk\tafter\nput\tk\n", 2, &["standard input:2:", "put KEY VALUE", "nothing was applied"][..]),
        ("put\tk\tafter\ndelete\ta\tb\n", 2, &["standard input:2:"]),
        ("put\tk\tafter\n\nexpire\tno such key\t5\n", 1, &["standard input:3:", "'no such key'"]),
        ("delete\tk\npersist\tk\n", 1, &["standard input:2:", "'k'"]),
        (&too_long, 2, &["standard input:2:", "65536"]),
    ] {
        place.run_with_input("batch", &[] as &[&str], input.as_bytes()).failed(code, words);
        assert_eq!(place.run("get", &["k"]).succeeded(), b"before");
        place.run("get", &["0"]).failed(1, &["'0'"]);
    }
    let file = place.write("operations.csv", "put,k,v\n");
    place.run("batch", &[&file]).failed(2, &["tsv or jsonl"]);
}

#[test]
fn conditions_precede_the_batch() {
    let place = Place::new();
    place.run("put", &["stock", "7"]).succeeded();
    let sell = b"expect\tstock\t7\nabsent\tsold\nput\tstock\t6\nput\tsold\t1\nabsent\tsold\n";
    place.run_with_input("batch", &[] as &[&str], sell).succeeded();
    for (input, code, words) in [
        (&sell[..], 1, &["standard input:1:", "'stock' has another value", "nothing was applied"][..]),
        (b"expect\tstock\t6\nabsent\tsold\nput\tstock\t5\n", 1, &["standard input:2:", "'sold' exists"]),
        (b"put\tstock\t5\nexpect\tno such key\t1\n", 1, &["standard input:2:", "'no such key'"]),
        (b"{\"op\":\"absent\",\"key\":\"k\",\"value\":\"v\"}", 2, &["KEY VALUE"]),
    ] {
        place.run_with_input("batch", &[] as &[&str], input).failed(code, words);
        assert_eq!(place.run("get", &["stock"]).succeeded(), b"6");
    }
}

#[test]
fn batch_of_many_keys() {
    let place = Place::new();
    let input: String = (0..5000).map(|number| format!("put\t{number}\tv\n")).collect();
    place.run_with_input("batch", &["-"], input.as_bytes()).succeeded();
    assert_eq!(place.run("get", &["4999"]).succeeded(), b"v");
}
