//! The states that the oracle accepts and rejects.

use super::*;

fn state<const N: usize>(pairs: [(&str, &str); N]) -> State {
    Some(pairs.into_iter().map(|(key, value)| (key.into(), value.into())).collect())
}

fn put(key: &str, value: &str) -> Op {
    Op::Put(key.into(), value.into())
}

#[test]
fn operation_in_flight_is_atomic() {
    let mut oracle = Oracle::exactly(state([("a", "1")]));
    oracle.begin(&put("a", "2"));
    assert_eq!(oracle.judge(&state([("a", "1")])), Ok(()));
    assert_eq!(oracle.judge(&state([("a", "2")])), Ok(()));
    for illegal in [state([]), state([("a", "3")]), state([("a", "2"), ("b", "")]), None] {
        assert!(oracle.judge(&illegal).is_err(), "{illegal:?}");
    }
    oracle.acknowledge();
    assert!(oracle.judge(&state([("a", "1")])).is_err());
    assert_eq!(oracle.judge(&state([("a", "2")])), Ok(()));
}

#[test]
fn refused_operation_changes_nothing() {
    let mut oracle = Oracle::exactly(state([]));
    oracle.begin(&put("a", "1"));
    oracle.refuse();
    assert_eq!(oracle.judge(&state([])), Ok(()));
    assert!(oracle.judge(&state([("a", "1")])).is_err());
}

#[test]
fn observed_value_must_stay() {
    let mut oracle = Oracle::exactly(state([("a", "1"), ("b", "1")]));
    oracle.begin(&Op::Delete("a".into()));
    let before = oracle.fingerprint();
    assert_eq!(oracle.saw(b"b", Some(b"1")), Ok(()));
    assert_eq!(oracle.saw(b"a", Some(b"1")), Ok(()));
    assert_eq!(oracle.judge(&state([("a", "1"), ("b", "1")])), Ok(()));
    assert_eq!(oracle.fingerprint(), before, "nothing new was seen");
    assert_eq!(oracle.saw(b"a", None), Ok(()));
    assert!(oracle.judge(&state([("a", "1"), ("b", "1")])).is_err());
    assert_eq!(oracle.judge(&state([("b", "1")])), Ok(()));
    assert_ne!(oracle.fingerprint(), before);
    assert!(oracle.saw(b"a", Some(b"1")).is_err(), "time does not run backwards");
    assert!(oracle.saw(b"b", Some(b"2")).is_err(), "a value of no put");
}

#[test]
fn several_changes_at_once_are_seen_together() {
    let changes = [("a", None), ("b", Some("2"))].map(|(key, value)| (key.into(), value.map(Into::into)));
    let mut oracle = Oracle::exactly(state([("a", "1"), ("c", "1")]));
    oracle.begin(&Op::Batch(changes.into()));
    assert_eq!(oracle.judge(&state([("a", "1"), ("c", "1")])), Ok(()));
    assert_eq!(oracle.judge(&state([("b", "2"), ("c", "1")])), Ok(()));
    assert!(oracle.judge(&state([("c", "1")])).is_err());
    assert_eq!((oracle.saw(b"a", Some(b"1")), oracle.saw(b"b", Some(b"2"))), (Ok(()), Ok(())));
    assert!(oracle.saw(b"a", Some(b"1")).is_err(), "half of it was seen");
    assert_eq!((oracle.saw(b"a", None), oracle.saw(b"c", Some(b"1"))), (Ok(()), Ok(())));
    assert!(oracle.judge(&state([("a", "1"), ("c", "1")])).is_err());
    oracle.acknowledge();
    assert_eq!(oracle.acknowledged(), &state([("b", "2"), ("c", "1")]));
}

#[test]
fn puts_in_flight_are_independent() {
    let items = [("a", "2"), ("b", "1"), ("a", "3")].map(|(key, value)| (key.into(), value.into()));
    let mut oracle = Oracle::exactly(state([("a", "1"), ("c", "1")]));
    oracle.begin(&Op::MultiPut(items.into()));
    for a in ["1", "2", "3"] {
        assert_eq!(oracle.judge(&state([("a", a), ("c", "1")])), Ok(()));
        assert_eq!(oracle.judge(&state([("a", a), ("b", "1"), ("c", "1")])), Ok(()));
    }
    for illegal in [state([("c", "1")]), state([("a", "3"), ("b", "1")]), state([("a", "4"), ("c", "1")]), None] {
        assert!(oracle.judge(&illegal).is_err(), "{illegal:?}");
    }
    let before = oracle.fingerprint();
    assert_eq!(oracle.saw(b"a", Some(b"2")), Ok(()));
    assert_ne!(oracle.fingerprint(), before);
    assert!(oracle.saw(b"a", Some(b"1")).is_err(), "time does not run backwards");
    assert!(oracle.judge(&state([("a", "1"), ("c", "1")])).is_err());
    assert_eq!(oracle.judge(&state([("a", "2"), ("c", "1")])), Ok(()));
    let mut refused = oracle.clone();
    assert!(refused.refuse_leaving(state([("c", "1")])).is_err());
    refused.refuse_leaving(state([("a", "3"), ("c", "1")])).unwrap();
    assert!(refused.judge(&state([("a", "2"), ("c", "1")])).is_err());
    oracle.acknowledge();
    assert_eq!(oracle.acknowledged(), &state([("a", "3"), ("b", "1"), ("c", "1")]));
}

#[test]
fn before_format_there_is_no_store() {
    let mut oracle = Oracle::exactly(None);
    assert!(oracle.judge(&state([])).is_err());
    oracle.begin(&Op::Format);
    assert_eq!((oracle.judge(&None), oracle.judge(&state([]))), (Ok(()), Ok(())));
    oracle.acknowledge();
    assert!(oracle.judge(&None).is_err());
}
