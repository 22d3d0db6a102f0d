//! Event loops as a pool: between clients' requests they apply changes to the order of keys.

use std::ops::{Bound, ControlFlow};

use hikv::pool::Sharing;
use hikv::{Durability, Options};
use parking_lot::Mutex;
use server::{Config, Parameters, Prepared};
use testkit::{Contention, Direction, Failure, Operations, Visit, contend};

use crate::common::{Client, TestServer, Value, array, bulk, error, int, ok};

/// Without background threads: only loops, writers and scans apply changes. Queues are short, so that they fill.
fn alone() -> Options {
    Options::new().durability(Durability::Buffered).background(false).tuning(|tuning| tuning.order_queues(2, 64))
}

fn server(options: &Options, split: &str) -> TestServer {
    let split: Sharing = split.parse().expect("a split");
    TestServer::of(options, Config { threads: 2, ordered: true, split, ..Config::default() })
}

/// Returns the value of this name in `INFO threads`, or in another section.
fn reported(client: &mut Client, section: &str, name: &str) -> String {
    let Value::Bulk(text) = client.say(&format!("INFO {section}")) else { panic!("not a text") };
    let text = String::from_utf8(text).expect("a text");
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {name} in {text}")).to_owned()
}

fn number(client: &mut Client, section: &str, name: &str) -> u64 {
    reported(client, section, name).parse().expect("a number")
}

/// Sends a line `count` times, in pipelines.
fn say_often(client: &mut Client, line: &str, count: usize) {
    for _ in 0..count / 64 {
        client.send(format!("{line}\r\n").repeat(64).as_bytes());
        (0..64).for_each(|_| drop(client.reply()));
    }
}

/// Clients of a server, one for each thread.
struct Clients(Mutex<Vec<Client>>);

impl Clients {
    fn with<R>(&self, ask: impl FnOnce(&mut Client) -> R) -> R {
        let mut client = self.0.lock().pop().expect("there is a client for each thread");
        let answer = ask(&mut client);
        self.0.lock().push(client);
        answer
    }

    fn ask(&self, request: &[&[u8]]) -> Value {
        self.with(|client| client.call(request))
    }
}

fn wrong(answer: &Value) -> Failure {
    Failure::Other(format!("{answer:?}"))
}

fn value_of(answer: Value) -> Result<Option<Vec<u8>>, Failure> {
    match answer {
        Value::Null => Ok(None),
        Value::Bulk(value) => Ok(Some(value)),
        other => Err(wrong(&other)),
    }
}

/// Returns the transaction that changes a key with the expected value; `None` if it has another value.
fn swap(
    client: &mut Client,
    key: &[u8],
    expected: Option<&[u8]>,
    new: Option<&[u8]>,
) -> Result<Option<Value>, Failure> {
    client.call(&[b"WATCH", key]);
    if value_of(client.call(&[b"GET", key]))?.as_deref() != expected {
        client.call(&["UNWATCH"]);
        return Ok(None);
    }
    client.call(&["MULTI"]);
    match new {
        Some(value) => client.call(&[b"SET", key, value]),
        None => client.call(&[b"DEL", key]),
    };
    Ok(Some(client.call(&["EXEC"])))
}

impl Operations for Clients {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        value_of(self.ask(&[b"GET", key]))
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        let answer = self.ask(&[b"SET", key, value]);
        if answer == ok() { Ok(()) } else { Err(wrong(&answer)) }
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Failure> {
        let answer = self.ask(&[b"DEL", key]);
        if let Value::Integer(count) = answer { Ok(count == 1) } else { Err(wrong(&answer)) }
    }

    fn compare_and_swap(&self, key: &[u8], expected: Option<&[u8]>, new: Option<&[u8]>) -> Result<bool, Failure> {
        self.with(|client| {
            loop {
                match swap(client, key, expected, new)? {
                    None => return Ok(false),
                    // Another client has written the key.
                    Some(Value::Null) => {}
                    Some(Value::Array(_)) => return Ok(true),
                    Some(other) => return Err(wrong(&other)),
                }
            }
        })
    }

    fn scan(&self, from: Bound<&[u8]>, direction: Direction, each: &mut Visit<'_>) -> Result<bool, Failure> {
        let Bound::Included(from) = from else { return Err(Failure::Other("a scan begins at a key".into())) };
        let answer = match direction {
            Direction::Forward => self.ask(&[b"RANGE", from, b"+", b"LIMIT", b"8"]),
            Direction::Backward => self.ask(&[b"RANGE", from, b"-", b"REV", b"LIMIT", b"8"]),
        };
        let Value::Array(parts) = answer else { return Err(wrong(&answer)) };
        for pair in parts.chunks(2) {
            let [Value::Bulk(key), Value::Bulk(value)] = pair else { return Err(wrong(&pair[0])) };
            if each(key, value) == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(true)
    }

    fn clear(&self) -> Result<(), Failure> {
        let answer = self.ask(&[b"FLUSHALL"]);
        if answer == ok() { Ok(()) } else { Err(wrong(&answer)) }
    }

    fn len(&self) -> Result<u64, Failure> {
        let answer = self.ask(&[b"DBSIZE"]);
        if let Value::Integer(count) = answer { Ok(count as u64) } else { Err(wrong(&answer)) }
    }

    fn for_each(&self, _each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        Err(Failure::Other("histories walk nothing".into()))
    }
}

/// Four clients of two loops. A window of operations ends in between, and roles change whenever a loop sleeps.
#[test]
fn keys_are_registers_while_loops_change_roles() {
    let contention = Contention {
        thread_count: 4,
        call_count: 1_800,
        key_count: 30,
        swaps: true,
        scans: true,
        clear_every: 0,
        seed: 18,
    };
    let server = server(&alone(), "adaptive");
    let clients = Clients(Mutex::new((0..contention.thread_count).map(|_| server.client()).collect()));
    contend(&clients, &contention).unwrap_or_else(|disorder| panic!("{disorder}"));
    let mut client = server.client();
    assert!(number(&mut client, "threads", "sampled_window_count") > 0);
    assert!(!reported(&mut client, "threads", "sampled_apply").ends_with("=none"), "no loop has applied");
}

/// Polls until all changes are applied: each request wakes one loop.
fn are_applied(client: &mut Client) -> bool {
    (0..1_000).any(|_| number(client, "order", "queued_count") == 0)
}

#[test]
fn loops_apply_all_changes_without_scans() {
    let mut queued = Vec::new();
    for split in ["adaptive", "adaptive-without-updates", "beside"] {
        let server = server(&alone(), split);
        let mut client = server.client();
        assert_eq!(client.say("COUNTRANGE - +"), int(0));
        for number in 0..150 {
            assert_eq!(client.say(&format!("SET key:{number} value")), ok());
        }
        queued.push(!are_applied(&mut client));
    }
    assert_eq!(queued, [false, false, true], "nobody but loops applies here, and they do if they are a pool");
}

#[test]
fn split_follows_the_workload() {
    let options = Options::new().durability(Durability::Buffered);
    let server = server(&options, "adaptive");
    let mut client = server.client();
    assert_eq!(client.say("COUNTRANGE - +"), int(0));
    let split =
        |client: &mut Client| ["serving_loop_count", "backend_loop_count"].map(|name| number(client, "threads", name));
    say_often(&mut client, "SET key value", 2 * 8_192 + 64);
    assert_eq!(split(&mut client), [1, 1], "one of two applies while something is written");
    assert!(number(&mut client, "threads", "sampled_left_count") > 4_096);
    assert!(are_applied(&mut client));
    say_often(&mut client, "GET key", 3 * 8_192);
    assert_eq!(split(&mut client), [2, 0], "nobody writes: nobody applies");
    assert_eq!(number(&mut client, "threads", "awake_backend_loop_count"), 0);
    let applied = number(&mut client, "order", "order_applied_count");
    say_often(&mut client, "PREFIX key", 8_192 + 64);
    assert_eq!(number(&mut client, "order", "order_applied_count"), applied);
    assert!(!reported(&mut client, "threads", "sampled_scan").starts_with("count=0,"), "each is counted as what it is");
}

#[test]
fn split_is_shown_as_configured() {
    let server = server(&alone(), "adaptive-without-updates");
    let split = "adaptive-without-updates";
    let mut client = server.client();
    assert_eq!(reported(&mut client, "threads", "split"), split);
    client.converse([
        ("CONFIG GET split", array([bulk("split"), bulk(split)])),
        (
            "CONFIG SET split beside",
            error("ERR CONFIG SET failed (possibly related to argument 'split') - can't set immutable config"),
        ),
    ]);
}

#[test]
fn fixed_split_is_of_all_threads() {
    let config = |pairs: &[(&str, &str)]| {
        let mut parameters = Parameters::default();
        pairs.iter().for_each(|(name, value)| parameters.set(name, value).expect("a parameter"));
        Config { addrs: vec!["127.0.0.1:0".into()], ..parameters.config() }
    };
    let fixed = config(&[("split", "2-1")]);
    assert_eq!(fixed.threads, 3);
    let server = TestServer::of(&Options::new().tuning(|tuning| tuning.background_threads(1)), fixed);
    let mut client = server.client();
    assert_eq!(reported(&mut client, "server", "io_threads"), "2");
    assert_eq!([1, 2], ["worker_count", "serving_loop_count"].map(|name| number(&mut client, "threads", name)));
    let refused = Prepared::of(config(&[("split", "2-1"), ("io-threads", "4")])).err().expect("it is refused");
    assert!(refused.to_string().starts_with("split 2-1 contradicts --threads 4: omit --threads"), "{refused}");
    assert!(Parameters::default().set("split", "0-4").is_err());
}
