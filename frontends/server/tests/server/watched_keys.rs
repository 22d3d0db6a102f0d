//! Watched keys and writes that bypass the server: a program embeds the server and uses the store directly.

use hikv::{Durability, EngineKind, Expiry, Limits, Options, Store, WriteBatch};
use server::Config;

use crate::common::{Client, TestServer, Value, array, bulk, int, ok};

const ENGINES: [EngineKind; 4] = [EngineKind::HiKv, EngineKind::RewoHash, EngineKind::Ink, EngineKind::Pmekv];

fn server_on(engine: EngineKind) -> TestServer {
    let options = Options::new().engine(engine).durability(Durability::Buffered);
    TestServer::of(&options, Config { threads: 1, ..Config::default() })
}

fn queued() -> Value {
    Value::Simple("QUEUED".into())
}

/// The write that bypasses the server, and whether it breaks the transaction.
type Written = (&'static str, fn(&Store), bool);

/// `k` is a short value, `long` one that compaction does not move, `absent` does not exist.
const WRITTEN: [Written; 10] = [
    ("nothing", |_| (), false),
    ("another key", |store| store.put("other", "value").unwrap(), false),
    ("another value", |store| store.put("k", "w").unwrap(), true),
    ("a key away", |store| assert!(store.delete("k").unwrap()), true),
    ("a key that was not there", |store| store.put("absent", "").unwrap(), true),
    ("an expiry", |store| assert!(store.update_item("k", |held| expiring(held.unwrap().value)).unwrap()), true),
    ("a long value", |store| store.put("long", long(1)).unwrap(), true),
    ("the long value that was there", |store| store.put("long", long(0)).unwrap(), true),
    ("everything away", |store| store.clear().unwrap(), true),
    // This is the only one that no version reveals, because compaction does the same.
    ("the value that was there", |store| store.put("k", "v").unwrap(), false),
];

fn expiring(value: &[u8]) -> hikv::Decision<'static> {
    hikv::Decision::PutUntil(value.to_vec().into(), Expiry::at_ms(4_000_000_000_000))
}

fn long(byte: u8) -> Vec<u8> {
    vec![byte; Limits::MOVED_VALUE_BYTES_MAX + 1]
}

#[test]
fn write_past_server_stops_transaction() {
    for engine in ENGINES {
        let server = server_on(engine);
        let (mut client, store) = (server.client(), &server.store);
        for (what, write, is_stopped) in WRITTEN {
            let mut batch = WriteBatch::new();
            batch.put("k", "v").put("long", long(0)).delete("absent").delete("mine");
            store.write(&batch).unwrap();
            client.converse([("WATCH k long absent", ok()), ("MULTI", ok()), ("SET mine 1", queued())]);
            write(store);
            let wanted = if is_stopped { Value::Null } else { array([ok()]) };
            assert_eq!(client.say("EXEC"), wanted, "{what}, {engine}");
            assert_eq!(store.contains("mine").unwrap(), !is_stopped, "{what}, {engine}");
            // A transaction without changes, and one that deletes everything, are broken as well.
            for command in ["PING", "FLUSHALL"] {
                store.write(&batch).unwrap();
                client.converse([("WATCH k long absent", ok()), ("MULTI", ok())]);
                assert_eq!(client.say(command), queued());
                write(store);
                assert_eq!(client.say("EXEC") == Value::Null, is_stopped, "{command}, {what}, {engine}");
            }
        }
    }
}

/// Returns a transaction that adds 1 and writes many other keys, so that it takes a while.
fn transaction() -> Vec<u8> {
    let sets: String = (0..200).map(|number| format!("SET other:{number} {number}\r\n")).collect();
    format!("MULTI\r\nINCR a\r\n{sets}INCR b\r\nEXEC\r\n").into_bytes()
}

/// Returns the reply to such a transaction after WATCH.
fn outcome(client: &mut Client) -> Value {
    (0..203).for_each(|_| assert_ne!(client.reply(), Value::Null));
    client.reply()
}

#[test]
fn direct_store_write_is_not_lost() {
    const ROUND_COUNT: i64 = 300;
    for engine in ENGINES {
        let server = server_on(engine);
        let (mut client, store) = (server.client(), &server.store);
        store.put("a", "0").unwrap();
        store.put("b", "0").unwrap();
        let (request, mut done, mut delay) = (transaction(), 0, 0u32);
        for round in 0..ROUND_COUNT {
            assert_eq!(client.say("WATCH a b"), ok());
            client.send(&request);
            // Sometimes before the commands are executed, sometimes after: the delay converges to the boundary.
            (0..delay).for_each(|_| std::hint::spin_loop());
            store.increment(if round % 2 == 0 { "a" } else { "b" }, 1).unwrap();
            if outcome(&mut client) == Value::Null {
                delay += delay / 8 + 100;
            } else {
                (done, delay) = (done + 1, delay - delay / 8);
            }
        }
        let half = ROUND_COUNT / 2;
        let wanted = [done + half, done + half].map(|sum| bulk(sum.to_string()));
        assert_eq!(client.say("MGET a b"), array(wanted), "{done} transactions of {ROUND_COUNT} on {engine}");
    }
}

#[test]
fn compaction_stops_no_transaction() {
    const KEY_COUNT: u32 = 20_000;
    let options = Options::new().tuning(|tuning| tuning.compact_above(None)).durability(Durability::Buffered);
    let server = TestServer::of(&options, Config { threads: 1, ..Config::default() });
    let (mut client, store) = (server.client(), &server.store);
    let key = |number: u32| format!("key:{number}");
    (0..KEY_COUNT).for_each(|number| store.put(key(number), [b'x'; 200]).unwrap());
    (0..KEY_COUNT).filter(|number| number % 10 > 0).for_each(|number| assert!(store.delete(key(number)).unwrap()));
    let watched: Vec<String> = (0..KEY_COUNT).step_by(10).map(key).collect();
    let version = |key: &String| store.in_place().get_item(key, |item| item.version()).unwrap();
    let before: Vec<_> = watched.iter().map(version).collect();
    assert_eq!(client.say(&format!("WATCH {}", watched.join(" "))), ok());
    client.converse([("MULTI", ok()), ("STRLEN key:0", queued()), ("DEL key:10", queued())]);
    // Memory kept by readers of other tests' stores leaves no gap. Each write frees some of it.
    while store.stats().garbage_count > 1_000 {
        store.put("written", "again").unwrap();
        std::thread::yield_now();
    }
    assert!(store.compact(|_| {}).unwrap().moved_items > 0);
    assert_ne!(watched.iter().map(version).collect::<Vec<_>>(), before, "none of them was moved");
    assert_eq!(client.say("EXEC"), array([int(200), int(1)]));
}

/// `WATCH` keeps all other clients waiting.
#[test]
fn watching_many_keys_takes_no_quadratic_time() {
    let server = TestServer::start();
    let mut client = server.client();
    let keys: Vec<String> = (0..300_000).map(|number| format!("a key with number {number}")).collect();
    let watch: Vec<&str> = std::iter::once("WATCH").chain(keys.iter().map(String::as_str)).collect();
    let began = std::time::Instant::now();
    assert_eq!(client.call(&watch), ok());
    assert_eq!(client.call(&watch), ok());
    assert!(began.elapsed() < std::time::Duration::from_secs(30), "{:?}", began.elapsed());
    client.converse([("SET elsewhere 1", ok()), ("MULTI", ok()), ("EXEC", array([]))]);
}
