//! Commands that take long: the other clients of their event loop are answered meanwhile.

use server::{Config, Parameters};

use crate::common::{TestServer, Value, array, bulk, encode, error, int, ok};

/// Longer than any test: what ends it is the end of the server, or of the client.
const FOR_EVER: &str = "DEBUG SLEEP 100000";

#[test]
fn a_long_command_keeps_its_client_waiting_and_nobody_else() {
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
fn what_cannot_be_read_behind_a_long_command_is_answered_after_it() {
    let server = TestServer::start();
    let mut client = server.client();
    client.send(b"SETBIT k 4294967296 1\r\n*2\r\n$3\r\nGET\r\n$x\r\n");
    let told = String::from_utf8(client.rest()).unwrap();
    let [first, second] = ["-ERR bit offset", "-ERR Protocol error"].map(|words| told.find(words));
    assert!(first.is_some() && first < second, "{told}");
}

#[test]
fn a_server_that_stops_waits_for_nobody_who_sleeps() {
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
    for who in ["local", "yes"] {
        with(who).client().converse([("DEBUG SLEEP 0", ok()), ("DEBUG PROTOCOL integer", int(12345))]);
    }
}
