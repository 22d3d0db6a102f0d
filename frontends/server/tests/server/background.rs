//! Long commands: the other clients of their event loop are served while these run.

use std::sync::atomic::{AtomicBool, Ordering};

use server::{Config, Parameters};

use crate::common::{Client, TestServer, Value, array, bulk, encode, error, int, ok};

/// Longer than any test: only the end of the server or of the client ends it.
const FOR_EVER: &str = "DEBUG SLEEP 100000";

#[test]
fn long_command_delays_only_its_client() {
    let server = TestServer::debugging();
    let (mut long, mut other) = (server.client(), server.client());
    let Value::Integer(id) = long.say("CLIENT ID") else { panic!("not a number") };
    long.send(format!("SET before 1\r\n{FOR_EVER}\r\nSET after 1\r\n").as_bytes());
    assert_eq!(long.reply(), ok());
    other.converse([
        ("GET before", bulk("1")),
        ("MULTI", ok()),
        ("INCR n", Value::Simple("QUEUED".into())),
        ("EXEC", array([int(1)])),
        ("SAVE", ok()),
        ("KEYS b*", array([bulk("before")])),
        ("GET after", Value::Null),
    ]);
    let id = id.to_string();
    assert_eq!(other.say(&format!("CLIENT KILL ID {id}")), int(1));
    assert!(long.is_at_end());
    assert_eq!(other.say("GET after"), Value::Null);
}

#[test]
fn requests_behind_long_command_are_answered() {
    let server = TestServer::start();
    let mut client = server.client();
    client.send(b"SETBIT k 4294967296 1\r\n*2\r\n$3\r\nGET\r\n$x\r\n");
    let reported = String::from_utf8(client.rest()).unwrap();
    let [first, second] = ["-ERR bit offset", "-ERR Protocol error"].map(|words| reported.find(words));
    assert!(first.is_some() && first < second, "{reported}");
}

#[test]
fn stopping_server_waits_for_no_sleeper() {
    let mut server = TestServer::debugging();
    let (mut long, mut other) = (server.client(), server.client());
    long.send(format!("{FOR_EVER}\r\n").as_bytes());
    other.send(b"SHUTDOWN\r\n");
    assert!(other.is_at_end());
    assert_eq!(long.rest(), b"+OK\r\n");
    server.join().expect("the server ends without an error");
}

#[test]
fn background_jobs_keep_pipeline_order() {
    let server = TestServer::start();
    let mut client = server.client();
    let long = (9 << 20).to_string();
    for round in 0..5 {
        let requests: [&[&str]; 9] = [
            &["SET", "k", "v"],
            &["SETRANGE", "k", &long, "end"],
            &["STRLEN", "k"],
            &["APPEND", "k", "!"],
            &["KEYS", "k"],
            &["MULTI"],
            &["KEYS", "k"],
            &["EXEC"],
            &["LCS", "k", "absent"],
        ];
        client.send(&requests.iter().flat_map(|request| encode(request)).collect::<Vec<u8>>());
        let len_bytes = (9 << 20) + 3;
        assert_eq!((client.reply(), client.reply(), client.reply()), (ok(), int(len_bytes), int(len_bytes)), "{round}");
        assert_eq!((client.reply(), client.reply()), (int(len_bytes + 1), array([bulk("k")])));
        assert_eq!((client.reply(), client.reply()), (ok(), Value::Simple("QUEUED".into())));
        assert_eq!((client.reply(), client.reply()), (array([array([bulk("k")])]), bulk("")));
    }
    client.send(b"SETRANGE k 9000000 x\r\nKEYS *\r\n");
    client.end();
    assert_eq!((client.reply(), client.reply()), (int((9 << 20) + 4), array([bulk("k")])));
    assert!(client.is_at_end());
}

/// Commands with exclusive access keep it alongside background jobs: none is lost, and no postponed client is
/// forgotten.
#[test]
fn transactions_are_isolated_from_background_jobs() {
    const COUNT: i64 = 60;
    let server = TestServer::start();
    let len = (8 << 20).to_string();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut client = server.client();
                for _ in 0..COUNT / 4 {
                    client.call(&["SETRANGE", "long", &len, "x"]);
                    client.say("KEYS *");
                }
            });
            scope.spawn(|| {
                let mut client = server.client();
                for _ in 0..COUNT {
                    client.send(b"MULTI\r\nINCR n\r\nINCR n\r\nGET n\r\nEXEC\r\n");
                    (0..4).for_each(|_| drop(client.reply()));
                    let Value::Array(replies) = client.reply() else { panic!("not an array") };
                    let Value::Integer(second) = replies[1] else { panic!("not a number") };
                    assert_eq!(replies, [int(second - 1), int(second), bulk(second.to_string())]);
                }
            });
        }
    });
    assert_eq!(server.client().say("GET n"), bulk((4 * COUNT).to_string()));
}

/// A transaction that sleeps while it holds its keys.
#[test]
fn long_transaction_blocks_only_its_keys() {
    let mut server = TestServer::debugging();
    let (mut long, mut other, mut kept_out) = (server.client(), server.client(), server.client());
    long.send(format!("MULTI\r\nSET mine 1\r\n{FOR_EVER}\r\nEXEC\r\n").as_bytes());
    assert_eq!((long.reply(), long.reply(), long.reply()), (ok(), queued(), queued()));
    wait_for_transaction(&mut other);
    other.converse([
        ("PING", Value::Simple("PONG".into())),
        ("SET yours 1", ok()),
        ("GET yours", bulk("1")),
        ("MGET yours others", array([bulk("1"), Value::Null])),
        ("WATCH yours", ok()),
        ("MULTI", ok()),
        ("INCR yours", queued()),
        ("EXEC", array([int(2)])),
        ("RENAME yours others", ok()),
    ]);
    kept_out.send(b"GET mine\r\n");
    other.send(b"SHUTDOWN\r\n");
    assert!(other.is_at_end());
    // The transaction was executed completely before the client that it blocked.
    assert_eq!(long.reply(), array([ok(), ok()]));
    assert_eq!(kept_out.rest(), b"$1\r\n1\r\n");
    server.join().expect("the server ends without an error");
}

/// Each client's first use of its database is recorded in the same table.
#[test]
fn transaction_records_first_use_of_database() {
    let server = TestServer::debugging();
    let (mut long, mut other, mut third) = (server.client(), server.client(), server.client());
    assert_eq!(long.say("SELECT 5"), ok());
    long.send(b"MULTI\r\nSET mine 1\r\nDEBUG SLEEP 0.3\r\nEXEC\r\n");
    assert_eq!((long.reply(), long.reply(), long.reply()), (ok(), queued(), queued()));
    wait_for_transaction(&mut other);
    other.converse([("SELECT 6", ok()), ("SET yours 1", ok())]);
    third.converse([("SELECT 5", ok()), ("SET theirs 1", ok())]);
    assert_eq!(long.reply(), array([ok(), ok()]));
    let server = server.restarted();
    let mut client = server.client();
    client.converse([("SELECT 6", ok()), ("DBSIZE", int(1)), ("EXPIRE yours 1000", int(1)), ("FLUSHDB", ok())]);
    client.converse([("GET yours", Value::Null), ("SELECT 5", ok()), ("DBSIZE", int(2)), ("FLUSHDB", ok())]);
    client.converse([("GET mine", Value::Null), ("GET theirs", Value::Null)]);
}

/// Another client writes the watched key while the transaction sleeps. So the transaction is refused, and its table of
/// databases is discarded.
#[test]
fn first_use_of_database_survives_refused_transaction() {
    let server = TestServer::debugging();
    let (mut long, mut other, mut third) = (server.client(), server.client(), server.client());
    long.converse([("WATCH watched", ok()), ("SELECT 5", ok())]);
    long.send(b"MULTI\r\nSET mine 1\r\nDEBUG SLEEP 0.3\r\nEXEC\r\n");
    assert_eq!((long.reply(), long.reply(), long.reply()), (ok(), queued(), queued()));
    wait_for_transaction(&mut other);
    third.converse([("SELECT 5", ok()), ("SET theirs 1", ok())]);
    assert_eq!(other.say("SET watched 1"), ok());
    assert_eq!(long.reply(), Value::Null);
    third.converse([("DBSIZE", int(1)), ("PERSIST theirs", int(0)), ("EXPIRE theirs 1000", int(1))]);
    let server = server.restarted();
    server.client().converse([("SELECT 5", ok()), ("DBSIZE", int(1)), ("PERSIST theirs", int(1))]);
}

/// The transaction is running when the other command arrives, which waits for its end.
#[test]
fn kill_and_pause_wait_for_running_transaction() {
    for line in ["CLIENT KILL ID 2", "CLIENT KILL TYPE normal", "CLIENT PAUSE 1000000 WRITE"] {
        let server = TestServer::debugging();
        let (mut admin, mut long) = (server.client(), server.client());
        assert_eq!(admin.say("PING"), Value::Simple("PONG".into()));
        assert_eq!(long.say("CLIENT ID"), int(2));
        long.send(b"MULTI\r\nSET mine 1\r\nDEBUG SLEEP 0.3\r\nEXEC\r\n");
        assert_eq!((long.reply(), long.reply(), long.reply()), (ok(), queued(), queued()));
        wait_for_transaction(&mut admin);
        let reply = admin.say(line);
        assert!(matches!(reply, Value::Integer(_)) || reply == ok(), "{reply:?}");
        assert!(server.store.contains("mine").expect("the store answers"), "{line} has replied too early");
    }
}

/// The embedding program writes a watched key while the transaction sleeps.
#[test]
fn transaction_respects_direct_store_write() {
    let mut server = TestServer::debugging();
    let (mut long, mut other, store) = (server.client(), server.client(), server.store.clone());
    store.put("k", "1").expect("there is room");
    assert_eq!(long.say("WATCH k"), ok());
    long.send(format!("MULTI\r\nINCR k\r\n{FOR_EVER}\r\nEXEC\r\n").as_bytes());
    assert_eq!((long.reply(), long.reply(), long.reply()), (ok(), queued(), queued()));
    wait_for_transaction(&mut other);
    store.put("k", "5").expect("there is room");
    other.send(b"SHUTDOWN\r\n");
    assert_eq!(long.reply(), Value::Null);
    server.join().expect("the server ends without an error");
    assert_eq!(store.get("k").expect("it is whole"), Some(b"5".to_vec().into()));
}

/// Clients that come later with longer commands are not served first.
#[test]
fn background_jobs_keep_arrival_order() {
    let server = TestServer::debugging();
    let (mut first, mut second, mut third, mut other) =
        (server.client(), server.client(), server.client(), server.client());
    first.send(b"MULTI\r\nGET made\r\nDEBUG SLEEP 0.3\r\nEXEC\r\n");
    assert_eq!((first.reply(), first.reply(), first.reply()), (ok(), queued(), queued()));
    wait_for_transaction(&mut other);
    second.send(b"MULTI\r\nSET made 1\r\nEXEC\r\n");
    assert_eq!((second.reply(), second.reply()), (ok(), queued()));
    // A single loop executes requests in order of arrival.
    other.say("PING");
    third.send(b"KEYS *\r\n");
    assert_eq!(third.reply(), array([bulk("made")]));
    assert_eq!(second.reply(), array([ok()]));
    assert_eq!(first.reply(), array([Value::Null, ok()]));
}

/// All clients send endless long commands; a transaction still gets its turn each time.
#[test]
fn stream_of_long_commands_starves_no_transaction() {
    let (server, stops) = (TestServer::single(), AtomicBool::new(false));
    server.client().say("SET k v");
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut client = server.client();
                while !stops.load(Ordering::Relaxed) {
                    assert_eq!(client.say("KEYS k"), array([bulk("k")]));
                }
            });
        }
        let mut client = server.client();
        for count in 1..=100 {
            client.send(b"MULTI\r\nINCR n\r\nEXEC\r\n");
            assert_eq!((client.reply(), client.reply(), client.reply()), (ok(), queued(), array([int(count)])));
        }
        stops.store(true, Ordering::Relaxed);
    });
}

/// A long request is queued for `EXEC` like any other, and clients that want no replies get none.
#[test]
fn background_jobs_in_transactions() {
    let server = TestServer::start();
    let mut client = server.client();
    let long = "x".repeat(9 << 20);
    assert_eq!(client.say("MULTI"), ok());
    assert_eq!(client.call(&["SET", "k", &long]), queued());
    assert_eq!(client.say("STRLEN k"), queued());
    assert_eq!(client.say("EXEC"), array([ok(), int(9 << 20)]));
    client.send(b"CLIENT REPLY OFF\r\n");
    client.send(&encode(&["SET", "k", &long]));
    client.send(b"KEYS *\r\nAPPEND k x\r\nCLIENT REPLY ON\r\nSTRLEN k\r\n");
    assert_eq!((client.reply(), client.reply()), (ok(), int((9 << 20) + 1)));
    client.send(b"CLIENT REPLY SKIP\r\nKEYS *\r\nSTRLEN k\r\n");
    assert_eq!(client.reply(), int((9 << 20) + 1));
}

/// A client's subscriptions and watched keys are still there when it resumes, and removed if it has disconnected.
#[test]
fn client_state_survives_background_job() {
    let mut server = TestServer::debugging();
    let (mut client, mut other) = (server.client(), server.client());
    client.send(b"HELLO 3\r\nSUBSCRIBE news\r\nKEYS *\r\nWATCH k\r\nKEYS *\r\n");
    (0..2).for_each(|_| drop(client.reply()));
    assert_eq!((client.reply(), client.reply(), client.reply()), (array([]), ok(), array([])));
    assert_eq!(other.say("PUBLISH news x"), int(1));
    assert_eq!(client.reply(), Value::Push(vec![bulk("message"), bulk("news"), bulk("x")]));
    other.say("SET k v");
    client.send(b"MULTI\r\nKEYS *\r\nEXEC\r\n");
    assert_eq!((client.reply(), client.reply(), client.reply()), (ok(), queued(), Value::Null));
    client.send(format!("{FOR_EVER}\r\n").as_bytes());
    while !other.is_listed("cmd=debug") {
        std::thread::yield_now();
    }
    drop(client);
    other.send(b"SHUTDOWN\r\n");
    assert!(other.is_at_end());
    server.join().expect("the server ends without an error");
}

/// Waits until a client's `EXEC` is running, so that it has claimed its keys. A command of that name would appear too
/// early: when it is queued.
fn wait_for_transaction(other: &mut Client) {
    while !other.is_listed("cmd=exec") {
        std::thread::yield_now();
    }
}

fn queued() -> Value {
    Value::Simple("QUEUED".into())
}

#[test]
fn debug_needs_permission() {
    let refused = error(
        "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run it from a local \
         connection, otherwise you need to set this option in the configuration file, and then restart the server.",
    );
    let with = |who: &str| {
        let mut parameters = Parameters::default();
        parameters.set("enable-debug-command", who).expect("a parameter");
        TestServer::with(Config { parameters, ..Config::default() })
    };
    with("no").client().converse([
        ("DEBUG SLEEP 0", refused.clone()),
        ("DEBUG PROTOCOL integer", refused.clone()),
        ("CONFIG GET enable-debug-command", array([bulk("enable-debug-command"), bulk("no")])),
        ("MULTI", ok()),
        ("DEBUG SLEEP 0", Value::Simple("QUEUED".into())),
        ("EXEC", array([refused])),
    ]);
    // Verbatim, without an added error code; line ends would end the reply.
    TestServer::debugging().client().converse([
        ("DEBUG ERROR \"Some text\"", error("Some text")),
        ("DEBUG ERROR \"A\\r\\nB\"", error("A  B")),
        ("MULTI", ok()),
        ("DEBUG ERROR x", queued()),
        ("MONITOR", queued()),
        ("EXEC", array([error("x"), error("ERR MONITOR isn't allowed for DENY BLOCKING client")])),
        ("PING", Value::Simple("PONG".into())),
    ]);
    for who in ["local", "yes"] {
        with(who).client().converse([("DEBUG SLEEP 0", ok()), ("DEBUG PROTOCOL integer", int(12345))]);
    }
}

/// The message is published while the transaction that subscribes is still running.
#[test]
fn messages_follow_reply_that_subscribes() {
    let server = TestServer::debugging();
    let (mut client, mut other) = (server.client(), server.client());
    let queued = || Value::Simple("QUEUED".into());
    client.converse([("MULTI", ok()), ("HELLO 3", queued()), ("SUBSCRIBE news", queued())]);
    client.converse([("PSUBSCRIBE n*", queued()), ("DEBUG SLEEP 0.5", queued())]);
    client.send(b"EXEC\r\n");
    while other.say("PUBLISH news x") != int(2) {
        std::thread::yield_now();
    }
    let Value::Array(replies) = client.reply() else { panic!("a message came before the reply") };
    assert_eq!(replies.len(), 4);
    assert_eq!(replies[3], ok());
    let mut message = client.reply();
    while message == Value::Push(vec![bulk("message"), bulk("news"), bulk("x")]) {
        message = client.reply();
    }
    assert_eq!(message, Value::Push(vec![bulk("pmessage"), bulk("n*"), bulk("news"), bulk("x")]));
    assert_eq!(client.say("ECHO done"), bulk("done"));
}
