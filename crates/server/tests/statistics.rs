//! What INFO, SLOWLOG and LATENCY tell of what was executed.

mod common;

use common::{Client, TestServer, Value, bulk, encode, int, ok};

/// The lines of a section of INFO.
fn info(client: &mut Client, section: &str) -> String {
    let Value::Bulk(text) = client.say(&format!("INFO {section}")) else { panic!("not a text") };
    String::from_utf8(text).expect("a text")
}

/// What INFO says of this name.
fn field(client: &mut Client, section: &str, name: &str) -> Option<String> {
    let text = info(client, section);
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::to_owned)
}

fn is_counted(client: &mut Client, command: &str, start: &str) -> bool {
    field(client, "commandstats", &format!("cmdstat_{command}")).is_some_and(|counts| counts.starts_with(start))
}

/// The names of the commands in the slow log, the newest first.
fn slow_requests(client: &mut Client) -> Vec<Vec<Value>> {
    let Value::Array(requests) = client.say("SLOWLOG GET -1") else { panic!("not an array") };
    let arguments = |request: &Value| match request {
        Value::Array(parts) => match &parts[3] {
            Value::Array(arguments) => arguments.clone(),
            other => panic!("no arguments: {other:?}"),
        },
        other => panic!("not a request: {other:?}"),
    };
    requests.iter().map(arguments).collect()
}

#[test]
fn reads_that_are_answered_together_are_in_the_slow_log_one_by_one() {
    let server = TestServer::single();
    let mut client = server.client();
    client.converse([
        ("CONFIG SET slowlog-max-len 1000", ok()),
        ("SLOWLOG RESET", ok()),
        ("CONFIG SET slowlog-log-slower-than 0", ok()),
    ]);
    let many: Vec<String> = ["MGET".into()].into_iter().chain((0..100).map(|key| format!("key:{key}"))).collect();
    let pipeline = [encode(&["GET", "a"]), encode(&["GET", "b"]), encode(&many), encode(&["GET", "c"])].concat();
    client.send(&pipeline);
    (0..4).for_each(|_| drop(client.reply()));
    client.converse([("CONFIG SET slowlog-log-slower-than -1", ok())]);
    let names: Vec<Value> = slow_requests(&mut client).iter().map(|arguments| arguments[1].clone()).collect();
    let wanted = ["c", "key:0", "b", "a", "SET"].map(bulk);
    assert_eq!(names, wanted, "a request of many groups is one entry");
}

#[test]
fn a_read_of_many_keys_is_as_slow_as_all_its_groups() {
    let server = TestServer::single();
    let mut client = server.client();
    client.converse([("SET k v", ok()), ("CONFIG SET latency-monitor-threshold 1 slowlog-log-slower-than 1000", ok())]);
    // So many groups take a millisecond on any machine, and hardly one of them does by itself.
    let keys = vec!["k"; 200_000];
    client.send(&encode(&[&["MGET"], &keys[..]].concat()));
    assert!(matches!(client.reply(), Value::Array(values) if values.len() == keys.len()));
    let slow = slow_requests(&mut client);
    assert!(slow.iter().any(|arguments| arguments[0] == bulk("MGET")), "{slow:?}");
    let Value::Array(events) = client.say("LATENCY LATEST") else { panic!("not an array") };
    assert!(!events.is_empty());
}

#[test]
fn commands_are_counted_by_their_names_alone_and_together() {
    let server = TestServer::single();
    let mut client = server.client();
    client.send(&[b"GET k\r\n".repeat(40), b"MGET k j\r\n".to_vec(), b"SET k v\r\n".repeat(33)].concat());
    (0..74).for_each(|_| drop(client.reply()));
    client.say("INCR k");
    client.say("GET");
    client.say("NONSENSE");
    client.say("CONFIG GET port");
    for (command, start) in [
        ("get", "calls=40,usec="),
        ("mget", "calls=1,"),
        ("set", "calls=33,"),
        ("incr", "calls=1,"),
        ("config|get", "calls=1,"),
    ] {
        assert!(is_counted(&mut client, command, start), "{command}: {}", info(&mut client, "commandstats"));
    }
    let counts = |client: &mut Client, command| field(client, "commandstats", command).expect("it was asked for");
    assert!(counts(&mut client, "cmdstat_incr").ends_with("rejected_calls=0,failed_calls=1"));
    assert!(counts(&mut client, "cmdstat_get").ends_with("rejected_calls=1,failed_calls=0"));
    assert_eq!(field(&mut client, "errorstats", "errorstat_ERR").as_deref(), Some("count=3"));
    assert!(info(&mut client, "").contains("# Errorstats") && !info(&mut client, "").contains("# Commandstats"));
    assert!(info(&mut client, "all").contains("# Commandstats"));
}

#[test]
fn a_reset_has_info_count_anew() {
    let server = TestServer::single();
    let mut client = server.client();
    client.say("SET k v");
    client.say("GET k");
    client.say("GET absent");
    client.say("NONSENSE");
    client.converse([("CONFIG RESETSTAT", ok())]);
    for name in ["keyspace_hits", "keyspace_misses", "total_error_replies", "total_connections_received"] {
        assert_eq!(field(&mut client, "stats", name).as_deref(), Some("0"), "{name}");
    }
    assert_eq!(info(&mut client, "errorstats"), "# Errorstats\r\n");
    assert_eq!(field(&mut client, "commandstats", "cmdstat_get"), None);
    client.say("GET k");
    assert_eq!(field(&mut client, "stats", "keyspace_hits").as_deref(), Some("1"));
    assert!(is_counted(&mut client, "get", "calls=1,"));
}

#[test]
fn memory_is_told_beside_its_limit() {
    let server = TestServer::start();
    let mut client = server.client();
    client.converse([("CONFIG SET maxmemory 100mb", ok()), ("DBSIZE", int(0))]);
    for (name, wanted) in
        [("maxmemory", "104857600"), ("maxmemory_human", "100.00M"), ("maxmemory_policy", "noeviction")]
    {
        assert_eq!(field(&mut client, "memory", name).as_deref(), Some(wanted));
    }
    let number = |client: &mut Client, name: &str| -> u64 {
        field(client, "memory", name).expect("the field is there").parse().expect("a number")
    };
    let before = number(&mut client, "used_memory");
    assert_eq!(client.call(&["SET", "k", &"v".repeat(1 << 20)]), ok());
    assert!(number(&mut client, "used_memory") >= before + (1 << 20));
    assert!(number(&mut client, "used_memory_rss") > 0 && number(&mut client, "total_system_memory") > 0);
}
