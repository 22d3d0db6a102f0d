//! Replies and error texts of each command.

use crate::common::{TestServer, Value, array, bulk, error, int, ok};

#[test]
fn ping_and_echo() {
    let server = TestServer::start();
    let mut client = server.client();
    assert_eq!(client.say("PING"), Value::Simple("PONG".into()));
    assert_eq!(client.say("ping hello"), bulk("hello"));
    assert_eq!(client.say("ping a b"), error("ERR wrong number of arguments for 'ping' command"));
    assert_eq!(client.say("ECHO 'a b'"), bulk("a b"));
    assert_eq!(client.say("echo"), error("ERR wrong number of arguments for 'echo' command"));
}

#[test]
fn set_get_del_exists() {
    let server = TestServer::start();
    let mut client = server.client();
    assert_eq!(client.say("GET k"), Value::Null);
    assert_eq!(client.say("SET k v"), ok());
    assert_eq!(client.say("GET k"), bulk("v"));
    assert_eq!(client.say("SET k w"), ok());
    assert_eq!(client.say("GET k"), bulk("w"));
    assert_eq!(client.say("EXISTS k k absent"), Value::Integer(2));
    assert_eq!(client.say("DEL k k absent"), Value::Integer(1));
    assert_eq!(client.say("GET k"), Value::Null);
    assert_eq!(client.say("get"), error("ERR wrong number of arguments for 'get' command"));
    assert_eq!(client.say("GET a b"), error("ERR wrong number of arguments for 'get' command"));
}

#[test]
fn mget_reads_several_keys() {
    let server = TestServer::start();
    let mut client = server.client();
    client.say("SET a 1");
    client.say("SET b 2");
    assert_eq!(client.say("MGET a absent b a"), Value::Array(vec![bulk("1"), Value::Null, bulk("2"), bulk("1")]));
    assert_eq!(client.say("MGET"), error("ERR wrong number of arguments for 'mget' command"));
}

#[test]
fn dbsize_and_flush() {
    let server = TestServer::start();
    let mut client = server.client();
    for flush in ["FLUSHALL", "FLUSHDB", "flushall async", "FLUSHDB SYNC"] {
        client.say("SET a 1");
        client.say("SET b 2");
        assert_eq!(client.say("DBSIZE"), Value::Integer(2));
        assert_eq!(client.say(flush), ok());
        assert_eq!(client.say("DBSIZE"), Value::Integer(0));
    }
    assert_eq!(client.say("FLUSHALL NOW"), error("ERR syntax error"));
    assert_eq!(client.say("DBSIZE x"), error("ERR wrong number of arguments for 'dbsize' command"));
}

/// Returns the names and values of a HELLO reply, without the client ID.
fn greeting(protocol: i64) -> Vec<Value> {
    let texts = ["server", "redis", "version", "7.0.15", "proto"].iter().map(bulk);
    let numbers = [Value::Integer(protocol), bulk("id"), Value::Integer(1)];
    texts.chain(numbers).chain(["mode", "standalone", "role", "master"].iter().map(bulk)).collect()
}

#[test]
fn hello_chooses_the_protocol() {
    let server = TestServer::start();
    let mut client = server.client();
    let modules = [bulk("modules"), Value::Array(vec![])];
    assert_eq!(client.say("HELLO"), Value::Array([&greeting(2), &modules[..]].concat()));
    assert_eq!(client.say("HELLO 3"), Value::Map([&greeting(3), &modules[..]].concat()));
    client.send(b"GET absent\r\nMGET absent\r\n");
    assert_eq!(client.line(), "_");
    assert_eq!(client.reply(), Value::Array(vec![Value::Null]));
    assert_eq!(client.say("INFO keyspace"), Value::Text("txt:# Keyspace\r\n".into()));
    assert!(matches!(client.say("COMMAND DOCS"), Value::Map(_)));
    let Value::Array(commands) = client.say("COMMAND INFO echo nothing") else { panic!("not an array") };
    let Value::Array(echo) = &commands[0] else { panic!("not an array") };
    assert_eq!((&echo[2], &commands[1]), (&Value::Set(flags(&["loading", "stale", "fast"])), &Value::Null));
    assert_eq!(client.say("HELLO 2"), Value::Array([&greeting(2), &modules[..]].concat()));
    client.send(b"GET absent\r\n");
    assert_eq!(client.line(), "$-1");
}

#[test]
fn hello_refuses_unknown_options() {
    let server = TestServer::start();
    let mut client = server.client();
    assert_eq!(client.say("HELLO 4"), error("NOPROTO unsupported protocol version"));
    assert_eq!(client.say("HELLO x"), error("ERR Protocol version is not an integer or out of range"));
    assert_eq!(client.say("HELLO 3 SETNAME"), error("ERR Syntax error in HELLO option 'SETNAME'"));
    client.send(b"GET absent\r\n");
    assert_eq!(client.line(), "$-1");
}

fn flags(names: &[&str]) -> Vec<Value> {
    names.iter().map(|name| Value::Simple((*name).into())).collect()
}

#[test]
fn quit_answers_and_closes() {
    let server = TestServer::start();
    let mut client = server.client();
    client.send(b"QUIT\r\nPING\r\n");
    assert_eq!(client.reply(), ok());
    assert!(client.is_at_end());
}

#[test]
fn unknown_commands_are_quoted_like_redis() {
    let server = TestServer::start();
    let mut client = server.client();
    assert_eq!(client.say("foo a b"), error("ERR unknown command 'foo', with args beginning with: 'a' 'b' "));
    assert_eq!(client.say("foo"), error("ERR unknown command 'foo', with args beginning with: "));
    assert_eq!(client.say(r#""a\r\nb" x"#), error("ERR unknown command 'a  b', with args beginning with: 'x' "));
    let long = "x".repeat(200);
    let cut = &long[..128];
    let text = format!("ERR unknown command '{cut}', with args beginning with: '{cut}' ");
    assert_eq!(client.say(&format!("{long} {long} y")), error(&text));
}

/// Returns the specification of a command that reads its first argument.
fn key_specification() -> Value {
    let spec = |kind: &str, numbers: &[(&str, i64)]| {
        let numbers = numbers.iter().flat_map(|(name, number)| [bulk(name), Value::Integer(*number)]).collect();
        Value::Array(vec![bulk("type"), bulk(kind), bulk("spec"), Value::Array(numbers)])
    };
    Value::Array(vec![Value::Array(vec![
        bulk("flags"),
        Value::Array(flags(&["RO", "access"])),
        bulk("begin_search"),
        spec("index", &[("index", 1)]),
        bulk("find_keys"),
        spec("range", &[("lastkey", 0), ("keystep", 1), ("limit", 0)]),
    ])])
}

#[test]
fn command_describes_the_table() {
    let server = TestServer::start();
    let mut client = server.client();
    let Value::Array(all) = client.say("COMMAND") else { panic!("not an array") };
    assert_eq!(client.say("COMMAND COUNT"), Value::Integer(all.len() as i64));
    let get = Value::Array(vec![
        bulk("get"),
        Value::Integer(2),
        Value::Array(flags(&["readonly", "fast"])),
        Value::Integer(1),
        Value::Integer(1),
        Value::Integer(1),
        Value::Array(flags(&["@read", "@string", "@fast"])),
        Value::Array(vec![]),
        key_specification(),
        Value::Array(vec![]),
    ]);
    assert!(all.contains(&get));
    assert_eq!(client.say("COMMAND INFO get nothing"), Value::Array(vec![get, Value::Null]));
    assert_eq!(client.say("COMMAND INFO"), Value::Array(all.clone()));
    let Value::Array(docs) = client.say("COMMAND DOCS") else { panic!("not an array") };
    assert_eq!(docs.len(), 2 * all.len());
    let Value::Array(docs) = client.say("COMMAND DOCS GET nothing") else { panic!("not an array") };
    assert_eq!((docs.len(), &docs[0]), (2, &bulk("get")));
    client.say("HELLO 3");
    let Value::Array(rows) = client.say("COMMAND INFO get command") else { panic!("not an array") };
    let kinds = rows.iter().map(|row| match row {
        Value::Array(row) => (matches!(row[2], Value::Set(_)), matches!(row[9], Value::Set(_))),
        other => panic!("not a row: {other:?}"),
    });
    assert!(kinds.eq([(true, true), (true, false)]), "subcommands are an array where there are any");
    assert_eq!(client.say("COMMAND FOO"), error("ERR unknown subcommand 'FOO'. Try COMMAND HELP."));
    assert_eq!(client.say("COMMAND COUNT x"), error("ERR wrong number of arguments for 'command|count' command"));
}

#[test]
fn documentation_lists_arguments() {
    let server = TestServer::start();
    let mut client = server.client();
    client.say("HELLO 3");
    let Value::Map(docs) = client.say("COMMAND DOCS BITPOS") else { panic!("not a map") };
    let Value::Map(docs) = &docs[1] else { panic!("not a map") };
    let place = docs.iter().position(|name| *name == bulk("arguments")).expect("it takes arguments");
    let map = |pairs: &[(&str, Value)]| {
        Value::Map(pairs.iter().flat_map(|(name, value)| [bulk(name), value.clone()]).collect())
    };
    let value = |name: &str, kind: &str| map(&[("name", bulk(name)), ("type", bulk(kind))]);
    let word =
        |word: &str| map(&[("name", bulk(word.to_lowercase())), ("type", bulk("pure-token")), ("token", bulk(word))]);
    let optional = |name: &str, kind: &str, parts: Value| {
        let flags = Value::Set(flags(&["optional"]));
        map(&[("name", bulk(name)), ("type", bulk(kind)), ("flags", flags), ("arguments", parts)])
    };
    let unit = optional("index_unit", "oneof", array([word("BYTE"), word("BIT")]));
    let end = optional("end_index", "block", array([value("end", "integer"), unit]));
    let index = optional("index", "block", array([value("start", "integer"), end]));
    assert_eq!(docs[place + 1], array([value("key", "key"), value("bit", "integer"), index]));
}

#[test]
fn info_shows_server_and_store() {
    let server = TestServer::start();
    let mut client = server.client();
    client.say("SET a 1");
    client.send(b"GET a\r\nMGET a b\r\n");
    client.reply();
    client.reply();
    let Value::Bulk(text) = client.say("INFO") else { panic!("not a text") };
    let text = String::from_utf8(text).expect("INFO is text");
    let stats = server.store.stats();
    for line in [
        "# Server".to_owned(),
        "redis_version:7.0.15".to_owned(),
        format!("hikv_version:{}", env!("CARGO_PKG_VERSION")),
        format!("process_id:{}", std::process::id()),
        format!("tcp_port:{}", server.addr.port()),
        "connected_clients:1".to_owned(),
        format!("medium:{}", stats.medium),
        format!("durability:{}", stats.durability),
        format!("durability_why:{}", stats.durability_why),
        "total_connections_received:1".to_owned(),
        "total_commands_processed:3".to_owned(),
        "keyspace_hits:2".to_owned(),
        "keyspace_misses:1".to_owned(),
        "db0:keys=1,expires=0,avg_ttl=0".to_owned(),
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    assert!(!stats.figures.is_empty());
    for name in stats.figures.iter().map(|figure| figure.name) {
        assert!(text.lines().any(|found| found.starts_with(&format!("{name}:"))), "{name} is not in\n{text}");
    }
    assert_eq!(client.say("INFO keyspace"), bulk("# Keyspace\r\ndb0:keys=1,expires=0,avg_ttl=0\r\n"));
    assert_eq!(client.say("INFO nothing"), bulk(""));
}

#[test]
fn keys_and_values_are_any_bytes() {
    let server = TestServer::start();
    let mut client = server.client();
    let every_byte: Vec<u8> = (0..=255).collect();
    for (key, value) in [(&every_byte[..], &b"\r\n$3\r\n\0"[..]), (b"", b""), (b"\0", &every_byte)] {
        assert_eq!(client.call(&[b"SET", key, value]), ok());
        assert_eq!(client.call(&[b"GET", key]), bulk(value));
    }
    assert_eq!(client.say("DBSIZE"), Value::Integer(3));
}

#[test]
fn key_that_is_too_long_is_refused() {
    let server = TestServer::start();
    let mut client = server.client();
    let key = vec![b'k'; 65_536];
    assert_eq!(client.call(&[b"SET", &key[1..], b"v"]), ok());
    assert_eq!(client.call(&[b"SET", &key[..], b"v"]), error("ERR the key has 65536 bytes; the limit is 65535"));
    assert_eq!(client.say("PING"), Value::Simple("PONG".into()));
    // The store's names of keys in other databases are longer; clients need not know that.
    assert_eq!(client.say("SELECT 1"), ok());
    assert_eq!(client.call(&[b"SET", &key[3..], b"v"]), ok());
    let refused = error("ERR the key has 65534 bytes; the limit is 65533");
    assert_eq!(client.call(&[b"SET", &key[2..], b"v"]), refused);
    assert_eq!(client.call(&[b"MSET", &b"k"[..], b"v", &key[2..], b"v"]), refused);
    assert_eq!(client.call(&[b"APPEND", &key[2..], b"v"]), refused);
}

/// In the words of a Redis without cluster mode, which clients look for.
#[test]
fn probe_for_cluster_finds_none() {
    let server = TestServer::start();
    let mut client = server.client();
    let none = || error("ERR This instance has cluster support disabled");
    for line in [
        "CLUSTER INFO",
        "CLUSTER SLOTS",
        "CLUSTER SHARDS",
        "CLUSTER NODES",
        "CLUSTER MYID",
        "CLUSTER KEYSLOT k",
        "CLUSTER COUNTKEYSINSLOT 1",
        "CLUSTER HELP",
        "READONLY",
        "READWRITE",
        "ASKING",
    ] {
        assert_eq!(client.say(line), none(), "{line}");
    }
    client.converse([("CLUSTER WHAT", error("ERR unknown subcommand 'WHAT'. Try CLUSTER HELP."))]);
}

/// Each command with subcommands lists them.
#[test]
fn containers_have_help() {
    let server = TestServer::start();
    let mut client = server.client();
    for name in [
        "ACL", "CLIENT", "COMMAND", "CONFIG", "FUNCTION", "LATENCY", "MEMORY", "MODULE", "OBJECT", "PUBSUB", "SCRIPT",
        "SLOWLOG",
    ] {
        let Value::Array(lines) = client.say(&format!("{name} HELP")) else { panic!("{name} has no help") };
        let first = format!("{name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:");
        assert_eq!(lines.first(), Some(&Value::Simple(first)));
        assert_eq!(lines.last(), Some(&Value::Simple("    Prints this help.".into())));
    }
}

#[test]
fn missing_commands_are_reported_like_redis() {
    let server = TestServer::start();
    server.client().converse([
        ("MODULE LIST", array([])),
        ("SCRIPT EXISTS abc def", array([int(0), int(0)])),
        ("REPLICAOF NO ONE", ok()),
        ("REPLICAOF 127.0.0.1 6379", error("ERR replication is not supported; only REPLICAOF NO ONE is accepted")),
        ("SCRIPT KILL", error("NOTBUSY No scripts in execution right now.")),
        ("SCRIPT DEBUG YES", error("ERR the debugger of scripts is not supported")),
        ("SCRIPT DEBUG NO", ok()),
        ("SCRIPT DEBUG MAYBE", error("ERR Use SCRIPT DEBUG YES/SYNC/NO")),
        ("FUNCTION LIST LIBRARYNAME * WITHCODE", array([])),
        ("FUNCTION LIST WHAT", error("ERR Unknown argument WHAT")),
        ("FUNCTION STATS", array([bulk("running_script"), Value::Null, bulk("engines"), array([])])),
        ("FUNCTION KILL", error("NOTBUSY No scripts in execution right now.")),
        ("FUNCTION DELETE x", error("ERR Library not found")),
        ("FUNCTION DUMP", bulk(b"\x0a\x00]\x9b\\@\x0f\x7f\xa2\xda")),
        ("CONFIG GET lfu-*", array(["lfu-decay-time", "1", "lfu-log-factor", "10"].map(bulk))),
        ("CONFIG SET maxmemory-policy allkeys-lru", ok()),
        ("CONFIG GET maxmemory-policy", array([bulk("maxmemory-policy"), bulk("allkeys-lru")])),
    ]);
}
