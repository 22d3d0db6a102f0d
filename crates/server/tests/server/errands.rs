//! Commands that take long: the other clients of their event loop are answered meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};

use server::{Config, Parameters};

use crate::common::{Client, TestServer, Value, array, bulk, encode, error, int, ok};

/// Longer than any test: what ends it is the end of the server, or of the client.
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
    let told = String::from_utf8(client.rest()).unwrap();
    let [first, second] = ["-ERR bit offset", "-ERR Protocol error"].map(|words| told.find(words));
    assert!(first.is_some() && first < second, "{told}");
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
fn errands_keep_the_order_of_a_pipeline() {
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

/// What must be alone is, beside errands: none is lost, and nobody is forgotten who was postponed.
#[test]
fn transactions_are_alone_beside_errands() {
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

/// A transaction that sleeps, and holds its keys meanwhile.
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
    // The transaction was executed as a whole before whoever it kept out.
    assert_eq!(long.reply(), array([ok(), ok()]));
    assert_eq!(kept_out.rest(), b"$1\r\n1\r\n");
    server.join().expect("the server ends without an error");
}

/// What the client has watched is written by the program that embeds the server, while the transaction sleeps.
#[test]
fn transaction_respects_direct_store_write() {
    let mut server = TestServer::debugging();
    let (mut long, mut other, store) = (server.client(), server.client(), server.store.clone());
    store.put("k", "1").expect("there is space");
    assert_eq!(long.say("WATCH k"), ok());
    long.send(format!("MULTI\r\nINCR k\r\n{FOR_EVER}\r\nEXEC\r\n").as_bytes());
    assert_eq!((long.reply(), long.reply(), long.reply()), (ok(), queued(), queued()));
    wait_for_transaction(&mut other);
    store.put("k", "5").expect("there is space");
    other.send(b"SHUTDOWN\r\n");
    assert_eq!(long.reply(), Value::Null);
    server.join().expect("the server ends without an error");
    assert_eq!(store.get("k").expect("it is whole"), Some(b"5".to_vec()));
}

/// Clients who come later, and whose commands would take longer, do not come before.
#[test]
fn errands_are_done_in_the_order_in_which_they_come() {
    let server = TestServer::debugging();
    let (mut first, mut second, mut third, mut other) =
        (server.client(), server.client(), server.client(), server.client());
    first.send(b"MULTI\r\nGET made\r\nDEBUG SLEEP 0.3\r\nEXEC\r\n");
    assert_eq!((first.reply(), first.reply(), first.reply()), (ok(), queued(), queued()));
    wait_for_transaction(&mut other);
    second.send(b"MULTI\r\nSET made 1\r\nEXEC\r\n");
    assert_eq!((second.reply(), second.reply()), (ok(), queued()));
    // One loop executes in the order in which requests come.
    other.say("PING");
    third.send(b"KEYS *\r\n");
    assert_eq!(third.reply(), array([bulk("made")]));
    assert_eq!(second.reply(), array([ok()]));
    assert_eq!(first.reply(), array([Value::Null, ok()]));
}

/// As many clients as there are give long commands without end; a transaction has its turn each time.
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

/// A request that is long waits for `EXEC` as any other, and clients that want no replies get none.
#[test]
fn errands_of_transactions_and_of_clients_without_replies() {
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

/// What a client subscribes to and watches is where it was when the client comes back, and is gone otherwise.
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
    while !other.is_told_of("cmd=debug") {
        std::thread::yield_now();
    }
    drop(client);
    other.send(b"SHUTDOWN\r\n");
    assert!(other.is_at_end());
    server.join().expect("the server ends without an error");
}

/// Until some client's `EXEC` is carried out, so that it has the claim on its keys. A command of its own name
/// is told of too early: when it is queued.
fn wait_for_transaction(other: &mut Client) {
    while !other.is_told_of("cmd=exec") {
        std::thread::yield_now();
    }
}

fn queued() -> Value {
    Value::Simple("QUEUED".into())
}

#[test]
fn debug_is_for_nobody_unless_the_server_was_told() {
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
    // As it is, without a code of its own; line ends would end the reply.
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
