//! Scripts: EVAL, EVALSHA and SCRIPT.

use std::thread;

use crate::common::{Client, TestServer, Value, array, bulk, encode, error, int, ok};

const SUM: &str = "return redis.call('INCRBY', KEYS[1], ARGV[1])";
const ENDLESS: &str = "while true do end";
const KILLED: &str = "ERR Script killed by user with SCRIPT KILL... script: ";

fn queued() -> Value {
    Value::Simple("QUEUED".into())
}

fn pong() -> Value {
    Value::Simple("PONG".into())
}

/// Repeats a request until its reply is `wanted`; every other reply must be `meanwhile`.
fn until(client: &mut Client, line: &str, wanted: &Value, meanwhile: &Value) {
    loop {
        let reply = client.say(line);
        if reply == *wanted {
            return;
        }
        assert_eq!(reply, *meanwhile, "{line}");
        thread::yield_now();
    }
}

/// Asks for the end of the script once one runs, and returns the reply.
fn kill_running(client: &mut Client) -> Value {
    loop {
        let reply = client.say("SCRIPT KILL");
        if reply != error("NOTBUSY No scripts in execution right now.") {
            return reply;
        }
        thread::yield_now();
    }
}

fn kill(client: &mut Client) {
    assert_eq!(kill_running(client), ok());
}

#[test]
fn scripts_run_by_text_and_by_hash() {
    let server = TestServer::start();
    let mut client = server.client();
    let hash = "7413dc2440db1fea7c0a0bde841fa68eefaf149c";
    assert_eq!(client.call(&["SCRIPT", "LOAD", "return 1"]), bulk("e0e1f9fabfc9d4800c877a703b823ac0578ff8db"));
    let Value::Bulk(sum) = client.call(&["SCRIPT", "LOAD", SUM]) else { panic!("no hash") };
    assert_eq!(client.call(&["EVAL", SUM, "1", "n", "2"]), int(2));
    assert_eq!(client.call(&[b"EVALSHA", &sum[..], b"1", b"n", b"3"]), int(5));
    let upper = sum.to_ascii_uppercase();
    assert_eq!(client.call(&[b"EVALSHA", &upper[..], b"1", b"n", b"3"]), int(8));
    let no_script = error("NOSCRIPT No matching script. Please use EVAL.");
    client.converse([
        ("SCRIPT EXISTS e0e1f9fabfc9d4800c877a703b823ac0578ff8db abc", array([int(1), int(0)])),
        ("EVALSHA_RO e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0", int(1)),
        (&format!("EVALSHA {hash} 0"), no_script.clone()),
        ("EVALSHA abc 0", no_script.clone()),
        ("EVAL 'return 1' x", error("ERR value is not an integer or out of range")),
        ("EVAL 'return 1' 2 a", error("ERR Number of keys can't be greater than number of args")),
        ("EVAL 'return 1' -1", error("ERR Number of keys can't be negative")),
        (
            "EVAL 'x(' 0",
            error("ERR Error compiling script (new function): user_script:1: unexpected symbol near '<eof>'"),
        ),
        ("SCRIPT FLUSH now", error("ERR SCRIPT FLUSH only support SYNC|ASYNC option")),
        ("SCRIPT FLUSH ASYNC", ok()),
        ("EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0", no_script),
        ("SCRIPT KILL", error("NOTBUSY No scripts in execution right now.")),
        ("COMMAND GETKEYS EVAL text 2 a b c", array([bulk("a"), bulk("b")])),
        ("COMMAND GETKEYS EVAL text 0", array([])),
    ]);
    let Value::Bulk(memory) = client.say("INFO memory") else { panic!("no text") };
    let memory = String::from_utf8_lossy(&memory).into_owned();
    assert!(memory.contains("number_of_cached_scripts:0\r\n") && !memory.contains("used_memory_lua:0\r\n"), "{memory}");
}

#[test]
fn failed_script_keeps_its_changes() {
    let server = TestServer::start();
    let mut client = server.client();
    let text = "redis.call('SET', 'a', '1') redis.call('INCR', 'a') redis.call('DEL', 'b') \
                return {redis.call('GET', 'a'), redis.call('EXISTS', 'b'), redis.call('DBSIZE')}";
    client.say("SET b 1");
    assert_eq!(client.call(&["EVAL", text, "0"]), array([bulk("2"), int(0), int(1)]));
    client.converse([("GET a", bulk("2")), ("GET b", Value::Null)]);
    let Value::Error(text) = client.say("EVAL \"redis.call('SET', 'c', '1') error('x')\" 0") else {
        panic!("no error")
    };
    assert!(text.starts_with("ERR user_script:1: x script: "), "{text}");
    client.converse([
        ("GET c", bulk("1")),
        ("SELECT 1", ok()),
        ("EVAL \"redis.call('SELECT', '2') return redis.call('SET', 'd', '1')\" 0", ok()),
        ("GET d", Value::Null),
        ("SELECT 2", ok()),
        ("GET d", bulk("1")),
    ]);
}

#[test]
fn script_obeys_rights_and_limits() {
    let server = TestServer::start();
    let mut client = server.client();
    client.converse([
        ("ACL SETUSER ada on nopass +@all -get ~k* &c*", ok()),
        ("AUTH ada x", ok()),
        ("EVAL 'return 1' 1 z", error("NOPERM this user has no permissions to access one of the keys used as arguments")),
        ("EVAL \"return redis.pcall('GET', 'k')\" 0", error("ERR The user executing the script can't run this command or subcommand")),
        (
            "EVAL \"return redis.pcall('SET', 'z', '1')\" 0",
            error("ERR The user executing the script can't access at least one of the keys mentioned in the command arguments"),
        ),
        (
            "EVAL \"return redis.pcall('PUBLISH', 'z', '1')\" 0",
            error("ERR The user executing the script can't publish to the channel mentioned in the command"),
        ),
        ("EVAL \"return redis.pcall('SUBSCRIBE', 'c')\" 0", error("ERR This Redis command is not allowed from script")),
        ("EVAL \"return redis.pcall('EVAL', 'return 1', '0')\" 0", error("ERR This Redis command is not allowed from script")),
        ("EVAL_RO \"return redis.pcall('SET', 'k', '1')\" 0", error("ERR Write commands are not allowed from read-only scripts.")),
        ("EVAL_RO \"return redis.pcall('EXISTS', 'k')\" 0", int(0)),
        ("AUTH default x", ok()),
        ("SET k 1", ok()),
        ("CONFIG SET maxmemory 1", ok()),
        ("EVAL \"return redis.pcall('SET', 'k', '2')\" 0", error("OOM command not allowed when used memory > 'maxmemory'.")),
        ("EVAL \"redis.call('DEL', 'k') return redis.pcall('SET', 'k', '3')\" 0", ok()),
        ("GET k", bulk("3")),
    ]);
    let allowed = "#!lua flags=allow-oom\nreturn redis.call('SET', 'k', '4')";
    assert_eq!(client.call(&["EVAL", allowed, "0"]), ok());
    let Value::Array(log) = client.say("ACL LOG 1") else { panic!("no log") };
    let Value::Array(entry) = &log[0] else { panic!("no entry") };
    assert!(entry.contains(&bulk("lua")), "{entry:?}");
}

/// Scripts, transactions and single commands change the same counter.
#[test]
fn concurrent_changes_are_not_lost() {
    const ROUNDS: usize = 300;
    let server = TestServer::start();
    let text = "local n = tonumber(redis.call('GET', KEYS[1]) or '0') redis.call('SET', KEYS[1], n + 1) return n";
    thread::scope(|scope| {
        for kind in 0..6 {
            let mut client = server.client();
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    match kind {
                        0 => drop(client.say("INCR n")),
                        1 => {
                            client.converse([("MULTI", ok()), ("INCR n", queued())]);
                            assert!(matches!(client.say("EXEC"), Value::Array(_)));
                        }
                        _ => assert!(matches!(client.call(&["EVAL", text, "1", "n"]), Value::Integer(_))),
                    }
                }
            });
        }
    });
    assert_eq!(server.client().say("GET n"), bulk((6 * ROUNDS).to_string()));
}

/// The lock of Redis' documentation: `SET NX`, and a script that deletes the key if it still has the owner's value.
#[test]
fn lock_has_one_owner() {
    const ROUNDS: usize = 200;
    let server = TestServer::start();
    let unlock = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) else return 0 end";
    thread::scope(|scope| {
        for owner in 0..4 {
            let mut client = server.client();
            scope.spawn(move || {
                let owner = owner.to_string();
                for _ in 0..ROUNDS {
                    while client.call(&["SET", "lock", &owner, "NX"]) != ok() {
                        let other = client.call(&["EVAL", unlock, "1", "lock", &owner]);
                        assert_eq!(other, int(0), "it was not the owner");
                    }
                    // Without the lock, increments would be lost.
                    let value = client.say("GET n");
                    let count: usize = if let Value::Bulk(count) = value {
                        String::from_utf8_lossy(&count).parse().expect("a number")
                    } else {
                        0
                    };
                    client.call(&["SET", "n", &(count + 1).to_string()]);
                    assert_eq!(client.call(&["EVAL", unlock, "1", "lock", &owner]), int(1));
                }
            });
        }
    });
    assert_eq!(server.client().say("GET n"), bulk((4 * ROUNDS).to_string()));
}

/// The script takes longer than an event loop permits, so it starts again in the background.
#[test]
fn long_script_is_atomic_and_runs_once() {
    let server = TestServer::start();
    let (mut runner, mut reader) = (server.client(), server.client());
    let text = "redis.call('INCR', 'a') local n = 0 for i = 1, 3000000 do n = n + i end return redis.call('INCR', 'b')";
    for round in 1..=5 {
        runner.send(&encode(&["EVAL", text, "0"]));
        let done = bulk(round.to_string());
        let before = if round == 1 { Value::Null } else { bulk((round - 1).to_string()) };
        until(&mut reader, "MGET a b", &array([done.clone(), done]), &array([before.clone(), before]));
        assert_eq!(runner.reply(), int(round));
    }
}

#[test]
fn endless_script_blocks_only_its_keys() {
    let server = TestServer::start();
    let (mut runner, mut other, mut waiting) = (server.client(), server.client(), server.client());
    assert_eq!(other.say("CONFIG SET busy-reply-threshold 0"), ok());
    for is_transaction in [false, true] {
        let script = encode(&["EVAL", ENDLESS, "0"]);
        if is_transaction {
            runner.send(&[encode(&["MULTI"]), encode(&["SET", "a", "1"]), script, encode(&["EXEC"])].concat());
            assert_eq!((runner.reply(), runner.reply(), runner.reply()), (ok(), queued(), queued()));
        } else {
            runner.send(&script);
        }
        waiting.send(&[encode(&["PING"]), encode(&["GET", "a"]), encode(&["PING"])].concat());
        assert_eq!(waiting.reply(), pong());
        assert_eq!(other.say("PING"), pong());
        kill(&mut other);
        let reply = runner.reply();
        let shown = format!("{reply:?}");
        assert!(shown.contains(KILLED), "{shown}");
        let value = if is_transaction { bulk("1") } else { Value::Null };
        let reply = waiting.reply();
        // It may have been executed before the script began.
        assert!(reply == value || reply == Value::Null, "{reply:?}");
        assert_eq!(waiting.reply(), pong());
        assert_eq!(other.say("GET a"), value);
    }
}

#[test]
fn busy_server_answers_what_ends_the_script() {
    let server = TestServer::start();
    let (mut runner, mut other) = (server.client(), server.client());
    let busy = error("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.");
    other.converse([
        ("CONFIG SET lua-time-limit 1", ok()),
        ("CONFIG GET busy-reply-threshold", array([bulk("busy-reply-threshold"), bulk("1")])),
    ]);
    for _ in 0..3 {
        runner.send(&encode(&["EVAL", ENDLESS, "0"]));
        until(&mut other, "PING", &busy, &pong());
        other.converse([
            ("GET a", busy.clone()),
            ("MULTI", ok()),
            ("GET a", busy.clone()),
            (
                "EXEC",
                error(
                    "EXECABORT Transaction discarded because of: BUSY Redis is busy running a script. You can only call \
                     SCRIPT KILL or SHUTDOWN NOSAVE.",
                ),
            ),
            ("SHUTDOWN", busy.clone()),
            ("SCRIPT KILL", ok()),
        ]);
        let Value::Error(text) = runner.reply() else { panic!("no error") };
        assert!(text.starts_with(KILLED), "{text}");
        until(&mut other, "PING", &pong(), &busy);
    }
}

/// A script that has begun to write cannot be killed. The end of the server stops it, and nothing of it is written.
#[test]
fn stopping_server_discards_running_script() {
    let script = encode(&["EVAL", "redis.call('SET', 'a', '1') while true do end", "0"]);
    let within = [encode(&["MULTI"]), encode(&["SET", "b", "1"]), script.clone(), encode(&["EXEC"])].concat();
    for requests in [script, within] {
        while !is_discarded(&requests) {}
    }
}

/// Stops a server while these requests run, which end with an endless script; returns false if the script was killed
/// before its first write.
fn is_discarded(requests: &[u8]) -> bool {
    let mut server = TestServer::start();
    let (mut runner, mut other) = (server.client(), server.client());
    runner.send(requests);
    let reply = kill_running(&mut other);
    if reply == ok() {
        return false;
    }
    let too_late = error(
        "UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait the \
         script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command.",
    );
    assert_eq!(reply, too_late);
    server.stop.stop();
    server.join().expect("the server ends without an error");
    assert!(server.store.is_empty().expect("the store is open"));
    drop(server.restarted());
    true
}

#[test]
fn script_is_part_of_a_transaction() {
    let server = TestServer::start();
    let (mut client, mut other) = (server.client(), server.client());
    client.converse([("WATCH n", ok()), ("MULTI", ok()), ("SET a 1", queued())]);
    client.call(&["EVAL", "redis.call('INCR', 'a') return redis.call('GET', 'a')", "0"]);
    assert_eq!(client.say("EXEC"), array([ok(), bulk("2")]));
    client.converse([("WATCH n", ok()), ("MULTI", ok())]);
    client.call(&["EVAL", "return redis.call('SET', 'a', '9')", "0"]);
    assert_eq!(other.say("EVAL \"return redis.call('SET', 'n', '1')\" 0"), ok());
    client.converse([("EXEC", Value::Null), ("GET a", bulk("2"))]);
}

#[test]
fn observers_see_commands_of_scripts() {
    let server = TestServer::start();
    let (mut client, mut monitor, mut listener) = (server.client(), server.client(), server.client());
    client.say("CONFIG SET notify-keyspace-events K$");
    listener.say("SUBSCRIBE __keyspace@0__:a news");
    listener.reply();
    assert_eq!(monitor.say("MONITOR"), ok());
    let text = "redis.call('SET', 'a', '1') redis.call('PUBLISH', 'news', 'm') return 1";
    assert_eq!(client.call(&["EVAL", text, "0"]), int(1));
    let lines: Vec<String> = (0..3).map(|_| monitor.line()).collect();
    assert!(lines[0].contains("\"EVAL\"") && !lines[0].contains("lua]"), "{lines:?}");
    assert!(lines[1].contains("[0 lua] \"SET\" \"a\" \"1\"") && lines[2].contains("lua] \"PUBLISH\""), "{lines:?}");
    assert_eq!(listener.reply(), array([bulk("message"), bulk("__keyspace@0__:a"), bulk("set")]));
    assert_eq!(listener.reply(), array([bulk("message"), bulk("news"), bulk("m")]));
}

#[test]
fn pipelined_scripts_are_answered_in_order() {
    let server = TestServer::start();
    let mut client = server.client();
    let requests = (1..=100).flat_map(|number: i32| {
        [encode(&["INCR", "n"]), encode(&["EVAL", SUM, "1", "n", &number.to_string()]), encode(&["GET", "n"])].concat()
    });
    client.send(&requests.collect::<Vec<u8>>());
    let mut sum = 0;
    for number in 1..=100 {
        assert_eq!(client.reply(), int(sum + 1));
        sum += 1 + number;
        assert_eq!((client.reply(), client.reply()), (int(sum), bulk(sum.to_string())));
    }
}

#[test]
fn script_without_memory_fails_alone() {
    let server = TestServer::start();
    let (mut client, mut other) = (server.client(), server.client());
    assert_eq!(other.say("CONFIG SET busy-reply-threshold 0"), ok());
    let text = "redis.call('SET', 'a', '1') local s = 'x' while true do s = s .. s end";
    let Value::Error(text) = client.call(&["EVAL", text, "0"]) else { panic!("no error") };
    assert!(text.contains("not enough memory"), "{text}");
    client.converse([("PING", pong()), ("GET a", bulk("1")), ("EVAL 'return 1' 0", int(1))]);
    assert_eq!(other.say("PING"), pong());
}

/// Scripts that exceed their memory together make the server forget some, also while it starts one.
#[test]
fn scripts_beyond_their_memory_run() {
    let server = TestServer::start();
    let mut client = server.client();
    let comment = "-".repeat(7 << 20);
    for number in 0..11 {
        assert_eq!(client.call(&["EVAL", &format!("return {number} {comment}"), "0"]), int(number));
    }
    assert_eq!(client.say("EVAL 'return 1' 0"), int(1));
}

#[test]
fn long_reply_of_a_script_is_whole() {
    const COUNT: usize = 10_000;
    let server = TestServer::start();
    let mut client = server.client();
    let text = "for i = 1, tonumber(ARGV[1]) do redis.call('SET', 'key:' .. i, i) end return redis.call('KEYS', '*')";
    let Value::Array(keys) = client.call(&["EVAL", text, "0", &COUNT.to_string()]) else { panic!("no keys") };
    assert_eq!(keys.len(), COUNT);
}
