//! Lists.

use std::collections::VecDeque;

use crate::common::{Client, TestServer, Value, array, bulk, error, int, ok};

const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

fn bulks(words: &str) -> Value {
    Value::Array(words.split_whitespace().map(bulk).collect())
}

fn queued() -> Value {
    Value::Simple("QUEUED".into())
}

#[test]
fn elements_push_and_pop_at_ends() {
    let server = TestServer::start();
    let mut client = server.client();
    client.converse([
        ("LPOP l", Value::Null),
        ("RPOP l 2", Value::Null),
        ("LLEN l", int(0)),
        ("LPUSHX l a", int(0)),
        ("EXISTS l", int(0)),
        ("RPUSH l c d", int(2)),
        ("LPUSH l b a", int(4)),
        ("RPUSHX l e f", int(6)),
        ("LPUSHX l 0", int(7)),
        ("LRANGE l 0 -1", bulks("0 a b c d e f")),
        ("TYPE l", Value::Simple("list".into())),
        ("OBJECT ENCODING l", bulk("quicklist")),
        ("LPOP l", bulk("0")),
        ("RPOP l", bulk("f")),
        ("LPOP l 2", bulks("a b")),
        ("RPOP l 2", bulks("e d")),
        ("LPOP l 0", array([])),
        ("RPOP l -1", error("ERR value is out of range, must be positive")),
        ("RPOP l x", error("ERR value is out of range, must be positive")),
        ("RPOP l 1 1", error("ERR wrong number of arguments for 'rpop' command")),
        ("RPOP l 10", bulks("c")),
        ("EXISTS l", int(0)),
        ("LPOP l", Value::Null),
    ]);
}

#[test]
fn elements_are_found_by_index_or_value() {
    let server = TestServer::start();
    let mut client = server.client();
    client.converse([
        ("RPUSH l a b c a b a", int(6)),
        ("LINDEX l 0", bulk("a")),
        ("LINDEX l -2", bulk("b")),
        ("LINDEX l 6", Value::Null),
        ("LINDEX l -7", Value::Null),
        ("LINDEX l x", error("ERR value is not an integer or out of range")),
        ("LINDEX none x", Value::Null),
        ("LRANGE l 1 2", bulks("b c")),
        ("LRANGE l -2 100", bulks("b a")),
        ("LRANGE l 4 2", array([])),
        ("LRANGE l -9223372036854775808 9223372036854775807", bulks("a b c a b a")),
        ("LRANGE none x 1", error("ERR value is not an integer or out of range")),
        ("LPOS l a", int(0)),
        ("LPOS l a RANK 2", int(3)),
        ("LPOS l a RANK -1", int(5)),
        ("LPOS l a COUNT 0", array([int(0), int(3), int(5)])),
        ("LPOS l a COUNT 2 RANK -1", array([int(5), int(3)])),
        ("LPOS l a COUNT 0 MAXLEN 4", array([int(0), int(3)])),
        ("LPOS l a COUNT 0 RANK -1 MAXLEN 4", array([int(5), int(3)])),
        ("LPOS l x", Value::Null),
        ("LPOS l x COUNT 1", array([])),
        ("LPOS none a COUNT 1", array([])),
        ("LPOS l a COUNT -1", error("ERR COUNT can't be negative")),
        ("LPOS l a MAXLEN -1", error("ERR MAXLEN can't be negative")),
        ("LPOS l a MAXLEN", error("ERR syntax error")),
        (
            "LPOS l a RANK 0",
            error(
                "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to \
                 start from the end of the list",
            ),
        ),
        ("LSET l -1 z", ok()),
        ("LSET l 6 z", error("ERR index out of range")),
        ("LSET none 0 z", error("ERR no such key")),
        ("LINSERT l BEFORE c 1", int(7)),
        ("LINSERT l AFTER b 2", int(8)),
        ("LINSERT l after z 3", int(9)),
        ("LINSERT l before a 4", int(10)),
        ("LINSERT l BEFORE x 5", int(-1)),
        ("LINSERT none BEFORE x 5", int(0)),
        ("LINSERT l WITHIN x 5", error("ERR syntax error")),
        ("LRANGE l 0 -1", bulks("4 a b 2 1 c a b z 3")),
        ("LREM l 1 a", int(1)),
        ("LREM l -1 b", int(1)),
        ("LREM l 0 x", int(0)),
        ("LRANGE l 0 -1", bulks("4 b 2 1 c a z 3")),
        ("LTRIM l 1 -2", ok()),
        ("LRANGE l 0 -1", bulks("b 2 1 c a z")),
        ("LTRIM l 5 1", ok()),
        ("EXISTS l", int(0)),
        ("LTRIM l 0 0", ok()),
    ]);
}

#[test]
fn elements_move_between_lists() {
    let server = TestServer::start();
    let mut client = server.client();
    client.converse([
        ("RPUSH a 1 2 3", int(3)),
        ("LMOVE a b LEFT RIGHT", bulk("1")),
        ("RPOPLPUSH a b", bulk("3")),
        ("LRANGE b 0 -1", bulks("3 1")),
        ("LMOVE b b LEFT RIGHT", bulk("3")),
        ("LRANGE b 0 -1", bulks("1 3")),
        ("RPOPLPUSH a a", bulk("2")),
        ("LRANGE a 0 -1", bulks("2")),
        ("LMOVE a b RIGHT LEFT", bulk("2")),
        ("EXISTS a", int(0)),
        ("LMOVE a b RIGHT LEFT", Value::Null),
        ("LMOVE a b RIGHT UP", error("ERR syntax error")),
        ("SET s x", ok()),
        ("LMOVE b s RIGHT LEFT", error(WRONG_TYPE)),
        ("LRANGE b 0 -1", bulks("2 1 3")),
        ("LMPOP 2 a b RIGHT", array([bulk("b"), bulks("3")])),
        ("LMPOP 2 a b LEFT COUNT 5", array([bulk("b"), bulks("2 1")])),
        ("LMPOP 2 a b LEFT", Value::Null),
        ("LMPOP 2 a s LEFT", error(WRONG_TYPE)),
        ("LMPOP 0 a LEFT", error("ERR numkeys should be greater than 0")),
        ("LMPOP 2 a LEFT", error("ERR syntax error")),
        ("LMPOP 1 a LEFT COUNT 0", error("ERR count should be greater than 0")),
        ("LMPOP 1 a LEFT COUNT", error("ERR syntax error")),
        ("LMPOP 1 a LEFT COUNT 1 COUNT 1", error("ERR syntax error")),
        ("LPUSH s x", error(WRONG_TYPE)),
        ("LLEN s", error(WRONG_TYPE)),
        ("HSET h f v", int(1)),
        ("RPUSH h x", error(WRONG_TYPE)),
        ("RPUSH l x", int(1)),
        ("GET l", error(WRONG_TYPE)),
        ("HGET l x", error(WRONG_TYPE)),
        ("SET l x", ok()),
        ("GET l", bulk("x")),
    ]);
}

#[test]
fn changes_of_lists_are_reported() {
    let server = TestServer::start();
    let (mut client, mut listener) = (server.client(), server.client());
    client.say("CONFIG SET notify-keyspace-events KEA");
    listener.say("PSUBSCRIBE __keyevent@0__:*");
    client.converse([
        ("RPUSH l a b c d", int(4)),
        ("LPOP l", bulk("a")),
        ("LSET l 0 x", ok()),
        ("LINSERT l BEFORE x y", int(4)),
        ("LREM l 1 y", int(1)),
        ("LTRIM l 0 0", ok()),
        ("LMOVE l m LEFT LEFT", bulk("x")),
        ("LMPOP 1 m LEFT", array([bulk("m"), bulks("x")])),
    ]);
    let wanted = [
        "rpush l",
        "lpop l",
        "lset l",
        "linsert l",
        "lrem l",
        "ltrim l",
        "lpush m",
        "lpop l",
        "del l",
        "lpop m",
        "del m",
    ];
    for wanted in wanted {
        let Value::Array(message) = listener.reply() else { panic!("no message") };
        let (event, key) = wanted.split_once(' ').expect("two words");
        assert_eq!(message[2..], [bulk(format!("__keyevent@0__:{event}")), bulk(key)]);
    }
}

#[test]
fn transactions_change_lists_atomically() {
    let server = TestServer::start();
    let (mut client, mut other) = (server.client(), server.client());
    client.converse([
        ("MULTI", ok()),
        ("RPUSH l a b c", queued()),
        ("LPOP l", queued()),
        ("LINSERT l AFTER b x", queued()),
        ("LRANGE l 0 -1", queued()),
        ("LMOVE l m RIGHT LEFT", queued()),
        ("EXEC", array([int(3), bulk("a"), int(3), bulks("b x c"), bulk("c")])),
        ("LRANGE l 0 -1", bulks("b x")),
        ("LRANGE m 0 -1", bulks("c")),
        ("WATCH l", ok()),
        ("MULTI", ok()),
        ("RPUSH l y", queued()),
    ]);
    assert_eq!(other.say("RPOP l"), bulk("x"));
    client.converse([("EXEC", Value::Null), ("LLEN l", int(1))]);
    let script = "redis.call('RPUSH', KEYS[1], 'x', 'y'); redis.call('LREM', KEYS[1], 0, 'b'); \
                  return redis.call('LRANGE', KEYS[1], 0, -1)";
    assert_eq!(client.call(&["EVAL", script, "1", "l"]), bulks("x y"));
    client.converse([("EXPIRE l 100", int(1)), ("RPUSH l z", int(3)), ("TTL l", int(100))]);
    client.converse([
        ("LTRIM l -1 -1", ok()),
        ("TTL l", int(100)),
        ("COPY l n", int(1)),
        ("LRANGE n 0 -1", bulks("z")),
    ]);
    drop((client, other));
    let server = server.restarted();
    let mut client = server.client();
    client.converse([("LRANGE l 0 -1", bulks("z")), ("RPUSH l a", int(2)), ("LRANGE m 0 -1", bulks("c"))]);
}

/// A list as Redis would have it.
#[derive(Default)]
struct Model(VecDeque<String>);

impl Model {
    /// Changes the model by a random command, and returns the command with the expected reply.
    fn step(&mut self, random: &mut fastrand::Rng) -> (String, Value) {
        let (list, number) = (&mut self.0, random.usize(..4));
        let value = format!("v{number}");
        let len = list.len() as i64;
        let found = list.iter().position(|element| *element == value);
        match random.usize(..9) {
            0 | 1 => {
                list.push_front(value.clone());
                (format!("LPUSH l {value}"), int(len + 1))
            }
            2 | 3 => {
                list.extend([value.clone(), "w".into()]);
                (format!("RPUSH l {value} w"), int(len + 2))
            }
            4 => ("RPOP l".to_owned(), list.pop_back().map_or(Value::Null, |value| bulk(&value))),
            5 => {
                if let Some(index) = found {
                    list.insert(index, "i".into());
                }
                let reply = if len == 0 { 0 } else { found.map_or(-1, |_| len + 1) };
                (format!("LINSERT l BEFORE {value} i"), int(reply))
            }
            6 => {
                if let Some(index) = found {
                    list.insert(index + 1, "j".into());
                }
                let reply = if len == 0 { 0 } else { found.map_or(-1, |_| len + 1) };
                (format!("LINSERT l AFTER {value} j"), int(reply))
            }
            7 => {
                let (mut count, from_end) = (number, random.bool());
                let mut kept: Vec<String> = list.drain(..).collect();
                if from_end {
                    kept.reverse();
                }
                let all = number == 0;
                kept.retain(|element| {
                    let goes = *element == value && (all || count > 0);
                    count = count.saturating_sub(usize::from(goes));
                    !goes
                });
                if from_end {
                    kept.reverse();
                }
                list.extend(kept);
                let sign = if from_end && number > 0 { "-" } else { "" };
                (format!("LREM l {sign}{number} {value}"), int(len - list.len() as i64))
            }
            _ => {
                let first = random.usize(..3).min(list.len());
                list.drain(..first);
                list.truncate(300);
                (format!("LTRIM l {first} {}", first + 299), ok())
            }
        }
    }
}

fn check(client: &mut Client, model: &Model) {
    let wanted = Value::Array(model.0.iter().map(bulk).collect());
    assert_eq!(client.say("LRANGE l 0 -1"), wanted);
    assert_eq!(client.say("LLEN l"), int(model.0.len() as i64));
}

#[test]
fn random_changes_agree_with_a_model() {
    let server = TestServer::start();
    let mut client = server.client();
    for seed in 0..4 {
        let (mut model, mut random) = (Model::default(), fastrand::Rng::with_seed(seed));
        client.say("DEL l");
        for _ in 0..500 {
            let (command, wanted) = model.step(&mut random);
            assert_eq!(client.say(&command), wanted, "seed {seed}: {command}");
            check(&mut client, &model);
        }
    }
}

/// Clients of the same loop are served while a large list is read or trimmed.
#[test]
fn large_lists_are_changed_as_a_whole() {
    let server = TestServer::single();
    let mut client = server.client();
    for number in 0..40 {
        let mut request = vec!["RPUSH".to_owned(), "l".to_owned()];
        request.extend((0..1000).map(|element| format!("{}", number * 1000 + element)));
        client.call(&request);
    }
    let Value::Array(all) = client.say("LRANGE l 0 -1") else { panic!("no array") };
    assert!(all.iter().enumerate().all(|(index, value)| *value == bulk(index.to_string())) && all.len() == 40_000);
    client.converse([
        ("LINDEX l 39999", bulk("39999")),
        ("LREM l 1 20000", int(1)),
        ("LINSERT l BEFORE 30000 x", int(40_000)),
        ("LINDEX l 29999", bulk("x")),
        ("LTRIM l 20000 20001", ok()),
        ("LRANGE l 0 -1", bulks("20001 20002")),
        ("LPOP l 20000", bulks("20001 20002")),
        ("DBSIZE", int(0)),
    ]);
}

/// Long elements that stay are not written again, so a list of any size can be trimmed.
#[test]
fn trimmed_lists_keep_long_elements_in_place() {
    const COUNT: usize = 300;
    let server = TestServer::start();
    let mut client = server.client();
    let id_of = |key: &str| {
        let tree = server.store.existing_tree("hikv:collections").expect("it is found").expect("there is the tree");
        let records = tree.ordered().expect("there is an order").prefix([1]).expect("it is read");
        let mut records = records.map(|item| item.expect("it is read"));
        let (_, record) = records.find(|(stored, _)| stored.ends_with(key.as_bytes())).expect("there is the list");
        record[8..16].to_vec()
    };
    for (key, len_bytes, is_rewritten) in [("short", 10, true), ("long", 20_000, false)] {
        let values: Vec<String> = (0..COUNT).map(|number| format!("{number:0len_bytes$}")).collect();
        let words: Vec<&str> = ["RPUSH", key].into_iter().chain(values.iter().map(|value| &value[..])).collect();
        assert_eq!(client.call(&words), int(COUNT as i64));
        let before = id_of(key);
        assert_eq!(client.call(&["LTRIM", key, "10", "29"]), ok());
        assert_eq!(client.call(&["LRANGE", key, "0", "-1"]), Value::Array(values[10..30].iter().map(bulk).collect()));
        assert_eq!(id_of(key) != before, is_rewritten, "{key}");
    }
}
