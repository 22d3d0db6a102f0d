//! Engines without some features: commands that need them are refused without any effect.

use hikv::{Durability, EngineKind, Options, Order};
use server::Config;

use crate::common::{TestServer, Value, bulk, error, int, ok};

fn server_on(engine: EngineKind) -> TestServer {
    TestServer::of(&Options::new().engine(engine), Config { threads: 1, ..Config::default() })
}

#[test]
fn unsupported_command_is_refused() {
    for engine in [EngineKind::HiKv, EngineKind::RewoHash, EngineKind::Ink, EngineKind::Pmekv] {
        let server = server_on(engine);
        let (mut client, features) = (server.client(), server.store.features());
        let mut check = |command: &str, is_there: bool, what: &str| {
            let refused = error(&format!("ERR engine {engine} has no {what}"));
            assert_eq!(client.say(command) == refused, !is_there, "{command} on {engine}");
        };
        for command in ["RANGE a b", "PREFIX a", "COUNTRANGE a b"] {
            check(command, features.order != Order::No, "order");
        }
        for command in ["SAVE", "BGSAVE"] {
            check(command, features.snapshots, "snapshots");
        }
        for command in ["MSET a 1 b 2", "RENAME a c", "INCR n", "SETEX e 9 v", "EXPIRE e 9", "COPY c d", "CAS c 1 2"] {
            let reply = client.say(command);
            assert!(
                !matches!(&reply, Value::Error(text) if text.contains("has no")),
                "{command} on {engine}: {reply:?}"
            );
        }
    }
}

/// The keys of several databases are counted in order, if the engine has one.
#[test]
fn store_of_several_databases_is_served_again() {
    for &engine in EngineKind::ALL {
        let server = server_on(engine);
        server.client().converse([("SELECT 1", ok()), ("SET k v", ok()), ("SWAPDB 0 1", ok())]);
        server.restarted().client().converse([("GET k", bulk("v"))]);
    }
}

/// A store with named trees has the databases in its catalog: they are the same trees for the library and the server,
/// and the other trees are not the server's.
#[test]
fn databases_are_trees_of_the_library() {
    for engine in [EngineKind::HiKv, EngineKind::RewoHash, EngineKind::Ink, EngineKind::Pmekv] {
        let dir = tempfile::tempdir().unwrap();
        let options = Options::new().engine(engine);
        let store = options.open(dir.path()).unwrap();
        store.put("k", "0").unwrap();
        store.put([0xFF, 0x12], "marked").unwrap();
        store.tree("own").unwrap().put("k", "own").unwrap();
        store.close().unwrap();
        let server = TestServer::at_dir(dir);
        let mut client = server.client();
        client.converse([("DBSIZE", int(2)), ("GET k", bulk("0")), ("SELECT 3", ok()), ("DBSIZE", int(0))]);
        client.converse([("SET k 3", ok()), ("DBSIZE", int(1)), ("SWAPDB 3 5", ok()), ("GET k", Value::Null)]);
        client.converse([("MULTI", ok()), ("SWAPDB 5 0", queued()), ("SET after 1", queued())]);
        assert_eq!(client.say("EXEC"), Value::Array(vec![ok(), ok()]));
        let server = server.restarted();
        let mut client = server.client();
        client.converse([("GET k", bulk("3")), ("DBSIZE", int(1)), ("SELECT 3", ok()), ("GET after", bulk("1"))]);
        client.converse([("SELECT 5", ok()), ("GET k", bulk("0")), ("DBSIZE", int(2))]);
        let value = |name: &str, key: &str| {
            let tree = server.store.existing_tree(name).unwrap();
            tree.and_then(|tree| tree.get(key).unwrap()).map(|value| value.to_vec())
        };
        assert_eq!(value("hikv:0", "k").as_deref(), Some(&b"3"[..]));
        assert_eq!(value("hikv:5", "k").as_deref(), Some(&b"0"[..]));
        assert_eq!(value("hikv:3", "after").as_deref(), Some(&b"1"[..]));
        client.converse([("FLUSHDB", ok()), ("DBSIZE", int(0)), ("FLUSHALL", ok()), ("SELECT 0", ok())]);
        client.converse([("DBSIZE", int(0)), ("SELECT 3", ok()), ("DBSIZE", int(0))]);
        assert_eq!(value("own", "k").as_deref(), Some(&b"own"[..]));
        assert_eq!(server.store.verify(|_| {}).unwrap().damage, []);
    }
}

/// An engine without order cannot count the keys of several databases: it may refuse that only if another database has
/// a key.
#[test]
fn commands_without_put_use_no_database() {
    let server = server_on(EngineKind::RewoHash);
    let mut client = server.client();
    client.converse([
        ("SET k v", ok()),
        ("MOVE nothing 1", int(0)),
        ("COPY nothing k DB 2", int(0)),
        ("DBSIZE", int(1)),
    ]);
    assert_eq!(client.say("SELECT 3"), ok());
    for line in [
        "DEL k",
        "EXPIRE k 9",
        "SET k v XX",
        "SET k v WHAT",
        "GETDEL k",
        "SETRANGE k 0 ''",
        "CAS k a b",
        "BITOP AND k j",
        "INCRBYFLOAT k x",
        "PERSIST k",
        "RENAME k j",
        "MOVE k 0",
    ] {
        client.say(line);
        assert_eq!(client.say("DBSIZE"), int(0), "{line}");
        client.converse([("SELECT 0", ok()), ("DBSIZE", int(1)), ("SELECT 3", ok())]);
    }
    client.converse([("SELECT 0", ok()), ("DBSIZE", int(1)), ("SWAPDB 4 5", ok()), ("DBSIZE", int(1))]);
    client.converse([
        ("FLUSHDB", ok()),
        ("DBSIZE", int(0)),
        ("SET k v", ok()),
        ("MULTI", ok()),
        ("MOVE k 1", queued()),
    ]);
    assert_eq!(client.say("EXEC"), Value::Array(vec![int(1)]));
    assert_eq!(client.say("DBSIZE"), error("ERR engine rewo-hash has no order"));
    client.converse([("SELECT 1", ok()), ("GET k", bulk("v"))]);
}

fn queued() -> Value {
    Value::Simple("QUEUED".into())
}

#[test]
fn refused_command_does_nothing_and_counts() {
    let server = server_on(EngineKind::RewoHash);
    let mut client = server.client();
    let refused = || error("ERR engine rewo-hash has no order");
    // Whatever its arguments are.
    client.converse([("SET k v", ok()), ("RANGE a b LIMIT", refused()), ("MULTI", ok())]);
    client.converse([("PREFIX k", queued()), ("GET k", queued())]);
    assert_eq!(client.say("EXEC"), Value::Array(vec![refused(), bulk("v")]));
    let Value::Bulk(stats) = client.say("INFO commandstats") else { panic!("INFO is not answered with a text") };
    let stats = String::from_utf8(stats).expect("it is a text");
    for command in ["range", "prefix"] {
        let line = format!("cmdstat_{command}:calls=0,usec=0,usec_per_call=0.00,rejected_calls=1,failed_calls=0\r\n");
        assert!(stats.contains(&line), "{stats}");
    }
}

/// `docs/watching.md` and the metrics of every engine have the same names.
#[test]
fn metrics_have_their_rows_in_the_docs() {
    let docs = include_str!("../../../../docs/watching.md");
    let listed = |name: &str| docs.contains(&format!("`{name}`"));
    for &engine in EngineKind::ALL {
        let options = Options::new().engine(engine).durability(Durability::Buffered);
        let server = TestServer::of(&options, Config { http: Some("127.0.0.1:0".into()), ..Config::default() });
        let text = crate::watching::get(&server, "/metrics").body;
        let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
        let unlisted: Vec<_> = types
            .map(|(name, kind)| match kind {
                "counter" => format!("{name}_total"),
                "info" => format!("{name}_info"),
                _ => name.to_string(),
            })
            .filter(|name| !listed(name))
            .collect();
        assert!(unlisted.is_empty(), "{engine}: {unlisted:?}");
    }
}
