//! Sorted sets: the order by score has the same members and scores as the members themselves.

use std::collections::BTreeMap;

use crate::common::{Client, TestServer, Value};

/// The elements of all sorted sets: each member by its key, and by its score.
type Elements = BTreeMap<u64, [BTreeMap<Vec<u8>, u64>; 2]>;

/// Returns all records of sorted sets with their counts, and all elements, as stored.
fn stored(server: &TestServer) -> (BTreeMap<u64, u64>, Elements) {
    let trees = server.store.trees().expect("there is a catalog");
    let tree = trees.into_iter().find(|tree| tree.name == "hikv:collections").expect("there is the tree");
    let front_end = hikv::FrontEnd::of(&server.store).stored();
    let prefix = [&[0xFF, 0x11][..], &(tree.id as u16).to_be_bytes()].concat();
    let ordered = front_end.ordered().expect("there is an order");
    let (mut counts, mut elements) = (BTreeMap::new(), Elements::new());
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes"));
    for item in ordered.prefix(&prefix).expect("it is read") {
        let (key, value) = item.expect("an item");
        let key = &key[prefix.len()..];
        match key[0] {
            1 if value[0] == 4 => _ = counts.insert(number(&value[8..]), number(&value[16..])),
            2 => {
                let id = u64::from_be_bytes(key[1..9].try_into().expect("8 bytes"));
                let [by_member, by_score] = elements.entry(id).or_default();
                let rest = &key[10..];
                if key[9] == 0 {
                    by_member.insert(rest[4..].to_vec(), number(&value));
                } else {
                    // Scores in the tests are such that both forms differ in the sign alone.
                    let bits = u64::from_be_bytes(rest[..8].try_into().expect("8 bytes"));
                    let bits = if bits >> 63 == 0 { !bits } else { bits & !(1 << 63) };
                    assert_eq!(by_score.insert(rest[8..].to_vec(), bits), None, "a member has two scores");
                }
            }
            _ => {}
        }
    }
    (counts, elements)
}

/// Checks that both orders of each sorted set have the same members and scores, as many as its record says.
pub(crate) fn check(server: &TestServer) {
    let (counts, elements) = stored(server);
    for (id, count) in counts {
        let [by_member, by_score] = &elements[&id];
        assert_eq!(by_member, by_score, "of {id}");
        assert_eq!(by_member.len() as u64, count, "of {id}");
    }
}

/// Returns all members with their scores, in order.
fn contents(client: &mut Client, key: &str) -> Vec<(Vec<u8>, f64)> {
    let Value::Array(values) = client.say(&format!("ZRANGE {key} 0 -1 WITHSCORES")) else { panic!("no array") };
    let pair = |pair: &[Value]| match pair {
        [Value::Bulk(member), Value::Bulk(score)] => {
            (member.clone(), String::from_utf8_lossy(score).parse().expect("a number"))
        }
        other => panic!("no pair: {other:?}"),
    };
    values.chunks(2).map(pair).collect()
}

#[test]
fn random_changes_agree_with_a_model() {
    let server = TestServer::start();
    let mut client = server.client();
    let mut random = fastrand::Rng::with_seed(7);
    let mut model: BTreeMap<Vec<u8>, f64> = BTreeMap::new();
    let ordered = |model: &BTreeMap<Vec<u8>, f64>| {
        let mut all: Vec<_> = model.iter().map(|(member, score)| (member.clone(), *score)).collect();
        all.sort_by(|one, other| one.1.total_cmp(&other.1).then_with(|| one.0.cmp(&other.0)));
        all
    };
    for step in 0..1500 {
        let (member, score) = (format!("m{}", random.u32(..60)), f64::from(random.i32(-20..20)) / 4.0);
        match random.u32(..10) {
            0..5 => {
                client.say(&format!("ZADD z {score} {member}"));
                model.insert(member.into_bytes(), score);
            }
            5 => {
                client.say(&format!("ZINCRBY z {score} {member}"));
                *model.entry(member.into_bytes()).or_insert(0.0) += score;
            }
            6 | 7 => {
                client.say(&format!("ZREM z {member}"));
                model.remove(member.as_bytes());
            }
            8 => {
                client.say("ZPOPMAX z");
                if let Some((member, _)) = ordered(&model).pop() {
                    model.remove(&member);
                }
            }
            _ => {
                client.say(&format!("ZREMRANGEBYSCORE z {score} ({}", score + 0.5));
                model.retain(|_, held| !(score..score + 0.5).contains(held));
            }
        }
        if step % 100 == 0 {
            assert_eq!(contents(&mut client, "z"), ordered(&model), "after {step} steps");
        }
    }
    check(&server);
    drop(client);
    let server = server.restarted();
    assert_eq!(contents(&mut server.client(), "z"), ordered(&model));
    check(&server);
}

/// Clients of several loops change the same sorted set.
#[test]
fn concurrent_changes_keep_both_orders() {
    let server = TestServer::start();
    server.client().say("ZADD z 0 first");
    std::thread::scope(|scope| {
        for number in 0..4 {
            let server = &server;
            scope.spawn(move || {
                let (mut client, mut random) = (server.client(), fastrand::Rng::with_seed(number));
                for _ in 0..400 {
                    let (member, score) = (random.u32(..20), random.i32(..10));
                    client.say(&match random.u32(..6) {
                        0..3 => format!("ZADD z {score} {member}"),
                        3 => format!("ZINCRBY z 1 {member}"),
                        4 => format!("ZREM z {member}"),
                        _ => "ZPOPMIN z".to_owned(),
                    });
                }
            });
        }
    });
    check(&server);
}
