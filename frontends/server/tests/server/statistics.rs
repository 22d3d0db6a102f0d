//! INFO, SLOWLOG and LATENCY after executed requests.

use crate::common::{Client, TestServer, Value, array, bulk, encode, error, int, ok};

/// Returns the lines of a section of INFO.
fn info(client: &mut Client, section: &str) -> String {
    let Value::Bulk(text) = client.say(&format!("INFO {section}")) else { panic!("not a text") };
    String::from_utf8(text).expect("a text")
}

/// Returns the value of this name in INFO.
fn field(client: &mut Client, section: &str, name: &str) -> Option<String> {
    let text = info(client, section);
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::to_owned)
}

fn is_counted(client: &mut Client, command: &str, start: &str) -> bool {
    field(client, "commandstats", &format!("cmdstat_{command}")).is_some_and(|counts| counts.starts_with(start))
}

/// Returns the entries of the slow log, newest first.
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
fn grouped_reads_are_logged_separately() {
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
fn multi_key_read_latency_covers_all_groups() {
    let server = TestServer::single();
    let mut client = server.client();
    client.converse([("SET k v", ok()), ("CONFIG SET latency-monitor-threshold 1 slowlog-log-slower-than 1000", ok())]);
    // This many groups take a millisecond on any machine, and hardly any single one does.
    let keys = vec!["k"; 200_000];
    client.send(&encode(&[&["MGET"], &keys[..]].concat()));
    assert!(matches!(client.reply(), Value::Array(values) if values.len() == keys.len()));
    let slow = slow_requests(&mut client);
    assert!(slow.iter().any(|arguments| arguments[0] == bulk("MGET")), "{slow:?}");
    let Value::Array(events) = client.say("LATENCY LATEST") else { panic!("not an array") };
    assert!(!events.is_empty());
}

#[test]
fn commands_are_counted_by_name() {
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
fn reset_has_info_count_again() {
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
fn memory_is_shown_with_its_limit() {
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

/// Returns the calls of each command in the reply to LATENCY HISTOGRAM, and the count of its last bucket.
fn distributions(reply: &Value) -> Vec<(String, i64, i64)> {
    let pairs = |value: &Value| -> Vec<(Value, Value)> {
        let (Value::Array(values) | Value::Map(values)) = value else { panic!("no map: {value:?}") };
        values.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
    };
    let read = |(name, distribution): (Value, Value)| {
        let (Value::Bulk(name), parts) = (name, pairs(&distribution)) else { panic!("a name is wanted") };
        assert_eq!((&parts[0].0, &parts[1].0), (&bulk("calls"), &bulk("histogram_usec")));
        let number = |value: &Value| if let Value::Integer(number) = value { *number } else { panic!("{value:?}") };
        let buckets: Vec<(i64, i64)> =
            pairs(&parts[1].1).iter().map(|(limit, sum)| (number(limit), number(sum))).collect();
        assert!(buckets.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 < two[1].1), "{buckets:?}");
        (String::from_utf8(name).expect("a name"), number(&parts[0].1), buckets.last().expect("a bucket").1)
    };
    pairs(reply).into_iter().map(read).collect()
}

fn distribution(name: &str, calls: i64) -> (String, i64, i64) {
    (name.into(), calls, calls)
}

#[test]
fn latencies_are_reported_and_reset() {
    let server = TestServer::start();
    // Each has its own loop.
    let (mut client, mut other) = (server.client(), server.client());
    client.send(&[b"GET k\r\n".repeat(40), b"SET k v\r\n".repeat(33)].concat());
    (0..73).for_each(|_| drop(client.reply()));
    other.converse([("GET k", bulk("v")), ("CONFIG GET appendonly", array([bulk("appendonly"), bulk("no")]))]);
    let reported = distributions(&client.say("LATENCY HISTOGRAM"));
    assert_eq!(reported, [distribution("config|get", 1), distribution("get", 41), distribution("set", 33)]);
    let named = distributions(&client.say("LATENCY HISTOGRAM SET nonsense mget CONFIG config|get"));
    assert_eq!(named, [distribution("set", 33), distribution("config|get", 1), distribution("config|get", 1)]);
    other.say("HELLO 3");
    let resp3 = other.say("LATENCY HISTOGRAM get");
    assert!(matches!(&resp3, Value::Map(_)), "{resp3:?}");
    assert_eq!(distributions(&resp3), [distribution("get", 41)]);
    client.converse([("CONFIG RESETSTAT", ok()), ("GET k", bulk("v"))]);
    assert_eq!(distributions(&client.say("LATENCY HISTOGRAM get set")), [distribution("get", 1)]);
}

#[test]
fn slow_command_is_in_late_bucket() {
    let server = TestServer::debugging();
    let mut client = server.client();
    client.converse([("DEBUG SLEEP 0.02", ok())]);
    let Value::Array(reply) = client.say("LATENCY HISTOGRAM debug") else { panic!("not an array") };
    let Value::Array(distribution) = &reply[1] else { panic!("not an array") };
    let Value::Array(buckets) = &distribution[3] else { panic!("not an array") };
    assert!(matches!(buckets[0], Value::Integer(usec) if usec >= 20_000), "{buckets:?}");
}

#[test]
fn percentiles_can_be_disabled() {
    let server = TestServer::debugging();
    let mut client = server.client();
    client.converse([("DEBUG SLEEP 0.02", ok())]);
    let reported = field(&mut client, "latencystats", "latency_percentiles_usec_debug").expect("it was called");
    let usec: Vec<f64> = reported
        .split(',')
        .zip(["p50=", "p99=", "p99.9="])
        .map(|(part, name)| part.strip_prefix(name).expect("its name").parse().expect("a number"))
        .collect();
    assert!(usec.len() == 3 && usec.iter().all(|usec| *usec >= 20_000.0), "{reported}");
    client.converse([("CONFIG SET latency-tracking no", ok())]);
    assert_eq!(info(&mut client, "latencystats"), "# Latencystats\r\n");
}

#[test]
fn graph_shows_samples_of_event() {
    let server = TestServer::debugging();
    let mut client = server.client();
    client.converse([
        ("LATENCY GRAPH command", error("ERR No samples available for event 'command'")),
        ("CONFIG SET latency-monitor-threshold 1", ok()),
        ("DEBUG SLEEP 0.01", ok()),
    ]);
    let Value::Bulk(graph) = client.say("LATENCY GRAPH command") else { panic!("not a text") };
    let graph = String::from_utf8(graph).expect("a text");
    assert!(graph.starts_with("command - high ") && graph.contains(&"-".repeat(80)), "{graph}");
    assert!(graph.lines().any(|line| line == "_"), "one sample is flat: {graph}");
}

#[test]
fn memory_stats_are_those_of_info() {
    let server = TestServer::single();
    let mut client = server.client();
    client.converse([("SET a 1", ok()), ("SET b 2", ok())]);
    let reported = |reply: Value| -> Vec<(Value, Value)> {
        let (Value::Array(values) | Value::Map(values)) = reply else { panic!("no map: {reply:?}") };
        values.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
    };
    let figures = reported(client.say("MEMORY STATS"));
    let figure = |name| figures.iter().find(|(known, _)| *known == bulk(name)).map(|(_, value)| value.clone());
    let used: i64 = field(&mut client, "memory", "used_memory").expect("it is there").parse().expect("a number");
    assert_eq!(figure("total.allocated"), Some(int(used)));
    assert_eq!((figure("keys.count"), figure("keys.bytes-per-key")), (Some(int(2)), Some(int(used / 2))));
    let Some(Value::Bulk(ratio)) = figure("fragmentation") else { panic!("no ratio: {figures:?}") };
    assert!(String::from_utf8(ratio).expect("a text").parse::<f64>().expect("a number") > 0.0);
    client.say("HELLO 3");
    let figures = reported(client.say("MEMORY STATS"));
    assert!(figures.iter().any(|(name, value)| *name == bulk("fragmentation") && matches!(value, Value::Other(_))));
}

#[test]
fn memory_commands_are_answered() {
    let server = TestServer::single();
    let mut client = server.client();
    client.converse([
        ("MEMORY MALLOC-STATS", bulk("Stats not supported for the current allocator")),
        ("MEMORY PURGE", ok()),
        ("MEMORY STATS now", error("ERR wrong number of arguments for 'memory|stats' command")),
        ("MEMORY USAGE k SAMPLES -1", error("ERR syntax error")),
    ]);
    for (command, subcommands) in [
        ("MEMORY", &["DOCTOR", "MALLOC-STATS", "PURGE", "STATS", "USAGE", "HELP"][..]),
        ("LATENCY", &["DOCTOR", "GRAPH", "HISTOGRAM", "HISTORY", "LATEST", "RESET", "HELP"]),
    ] {
        let Value::Array(help) = client.say(&format!("{command} HELP")) else { panic!("not an array") };
        let named: Vec<&str> =
            help.iter().skip(1).step_by(2).map(|line| if let Value::Simple(text) = line { text } else { "" }).collect();
        assert_eq!(named, subcommands);
    }
}

#[test]
fn info_has_fields_that_tools_read() {
    let server = TestServer::start();
    let mut client = server.client();
    client.converse([("SET k v", ok()), ("INCR n", int(1)), ("GET k", bulk("v"))]);
    let text = info(&mut client, "everything");
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.unwrap_or_else(|| panic!("{name} is missing in {text}")).to_owned()
    };
    let number = |name: &str| value(name).parse::<f64>().unwrap_or_else(|_| panic!("{name} is no number"));
    assert_eq!((value("arch_bits"), value("run_id").len(), value("master_replid").len()), ("64".into(), 40, 40));
    assert!(value("os").starts_with("Linux ") && number("server_time_usec") > 1e15);
    assert_eq!((number("rdb_changes_since_last_save"), number("master_repl_offset")), (2.0, 0.0));
    assert!(number("used_memory_peak") >= number("used_memory") && number("used_memory_dataset") > 0.0);
    for name in
        ["used_cpu_sys", "used_cpu_user", "instantaneous_ops_per_sec", "latest_fork_usec", "used_memory_overhead"]
    {
        assert!(number(name) >= 0.0, "{name}");
    }
    assert_eq!((client.say("SAVE"), client.say("SET k w")), (ok(), ok()));
    assert!(info(&mut client, "persistence").contains("rdb_changes_since_last_save:1\r\n"));
    let Value::Bulk(list) = client.say("CLIENT LIST") else { panic!("not a text") };
    let list = String::from_utf8(list).expect("a text");
    assert!(!list.contains("tot-mem=0 "), "{list}");
}
