//! `CLIENT TRACKING` and its modes: the changes that a client is notified of.

use crate::common::{Client, TestServer, Value, array, bulk, error, int, ok};

/// Returns the invalidation message of a RESP3 client.
fn invalid<const N: usize>(keys: [&str; N]) -> Value {
    Value::Push(vec![bulk("invalidate"), array(keys.map(bulk))])
}

fn mark() -> Value {
    Value::Push(vec![bulk("message"), bulk("mark"), bulk("1")])
}

/// Returns a server, a RESP3 client that receives marks, and another client.
fn scene() -> (TestServer, Client, Client) {
    let server = TestServer::start();
    let (mut client, other) = (server.client(), server.client());
    client.say("HELLO 3");
    assert!(matches!(client.say("SUBSCRIBE mark"), Value::Push(_)));
    (server, client, other)
}

/// Sends the lines as `other`, and returns the messages that `client` receives before the mark.
fn heard(client: &mut Client, other: &mut Client, lines: &[&str]) -> Vec<Value> {
    for line in lines {
        let reply = other.say(line);
        assert!(!matches!(reply, Value::Error(_)), "{line}: {reply:?}");
    }
    assert!(matches!(other.say("PUBLISH mark 1"), Value::Integer(_)));
    std::iter::from_fn(|| Some(client.reply())).take_while(|message| *message != mark()).collect()
}

#[test]
fn nothing_is_heard_after_tracking_ends() {
    let (_server, mut client, mut other) = scene();
    for end in ["CLIENT TRACKING OFF", "RESET"] {
        client.converse([("CLIENT TRACKING ON", ok()), ("GET k", Value::Null)]);
        client.say(end);
        if end == "RESET" {
            client.say("HELLO 3");
            client.say("SUBSCRIBE mark");
        }
        assert_eq!(heard(&mut client, &mut other, &["SET k 1", "DEL k"]), [], "{end}");
    }
    // Keys read before still count, as in Redis.
    client.converse([("CLIENT TRACKING ON", ok()), ("GET k", Value::Null), ("CLIENT TRACKING OFF", ok())]);
    client.converse([("CLIENT TRACKING ON", ok())]);
    assert_eq!(
        heard(&mut client, &mut other, &["SET k 1", "FLUSHALL"]),
        [invalid(["k"]), Value::Push(vec![bulk("invalidate"), Value::Null])]
    );
}

#[test]
fn prefixes_are_announced_together() {
    let (_server, mut client, mut other) = scene();
    client.converse([("CLIENT TRACKING ON BCAST PREFIX a: PREFIX b:", ok())]);
    let lines = ["MULTI", "SET a:1 x", "SET b:1 x", "SET c:1 x", "SET a:2 x", "EXEC"];
    assert_eq!(heard(&mut client, &mut other, &lines), [invalid(["a:1", "a:2"]), invalid(["b:1"])]);
    // The server's internal name of a key in another database has a prefix.
    assert_eq!(heard(&mut client, &mut other, &["SELECT 1", "SET a:3 x"]), [invalid(["a:3"])]);
    client.converse([
        ("CLIENT TRACKING ON BCAST PREFIX d:", ok()),
        ("CLIENT TRACKING ON", error(
            "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with \
             a different mode.",
        )),
    ]);
    let overlaps = |prefix: &str, other: &str, which: &str| {
        error(&format!(
            "ERR Prefix '{prefix}' overlaps with {which} prefix '{other}'. Prefixes for a single client must not overlap."
        ))
    };
    client.converse([
        ("CLIENT TRACKING ON BCAST PREFIX a", overlaps("a", "a:", "an existing")),
        ("CLIENT TRACKING ON BCAST PREFIX x PREFIX xy", overlaps("x", "xy", "another provided")),
        ("CLIENT TRACKING ON BCAST PREFIX w PREFIX x PREFIX xy", overlaps("x", "xy", "another provided")),
    ]);
    let Value::Map(info) = client.say("CLIENT TRACKINGINFO") else { panic!("no map") };
    assert_eq!(info[1], Value::Set(vec![bulk("on"), bulk("bcast")]));
    assert_eq!((&info[3], &info[5]), (&int(0), &array(["a:", "b:", "d:"].map(bulk))));
    client.converse([("CLIENT TRACKING OFF", ok()), ("CLIENT TRACKING ON BCAST", ok())]);
    assert_eq!(heard(&mut client, &mut other, &["SET anything x"]), [invalid(["anything"])]);
}

/// In both ways of tracking.
#[test]
fn own_changes_are_left_out() {
    let (_server, mut client, mut other) = scene();
    client.converse([("CLIENT TRACKING ON NOLOOP", ok()), ("MGET k j", array([Value::Null, Value::Null]))]);
    client.converse([("SET k 1", ok())]);
    assert_eq!(heard(&mut client, &mut other, &["SET j 1", "SET k 2"]), [invalid(["j"])]);
    client.converse([("CLIENT TRACKING OFF", ok()), ("CLIENT TRACKING ON BCAST NOLOOP", ok()), ("SET k 3", ok())]);
    assert_eq!(heard(&mut client, &mut other, &["SET j 2"]), [invalid(["j"])]);
}

#[test]
fn caching_is_for_the_next_request() {
    let (_server, mut client, mut other) = scene();
    client.converse([
        ("CLIENT CACHING YES", error(
            "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled",
        )),
        ("CLIENT TRACKING ON OPTIN", ok()),
        ("CLIENT CACHING NO", error("ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.")),
        ("GET a", Value::Null),
        ("CLIENT CACHING YES", ok()),
        ("CLIENT GETREDIR", int(0)),
        ("GET b", Value::Null),
        ("GET c", Value::Null),
    ]);
    assert_eq!(heard(&mut client, &mut other, &["MSET a 1 b 1 c 1"]), [invalid(["b"])]);
    // A transaction counts as one request.
    client.converse([("CLIENT CACHING YES", ok()), ("MULTI", ok())]);
    for line in ["GET a", "GET b"] {
        assert_eq!(client.say(line), Value::Simple("QUEUED".into()));
    }
    assert_eq!(client.say("EXEC"), array([bulk("1"), bulk("1")]));
    assert_eq!(client.say("GET c"), bulk("1"));
    assert_eq!(heard(&mut client, &mut other, &["SET a 2", "SET b 2", "SET c 2"]), [invalid(["a"]), invalid(["b"])]);
    client.converse([
        ("CLIENT TRACKING ON OPTOUT", error(
            "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with \
             a different mode.",
        )),
        ("CLIENT TRACKING OFF", ok()),
        ("CLIENT TRACKING ON OPTOUT", ok()),
        ("CLIENT CACHING NO", ok()),
        ("GET a", bulk("2")),
        ("GET b", bulk("2")),
    ]);
    assert_eq!(heard(&mut client, &mut other, &["SET a 3", "SET b 3"]), [invalid(["b"])]);
}

#[test]
fn another_client_is_notified() {
    let (server, mut client, mut other) = scene();
    let mut subscriber = server.client();
    let id = |client: &mut Client| {
        let Value::Integer(id) = client.say("CLIENT ID") else { panic!("no number") };
        id
    };
    let (to_client, to_subscriber) = (id(&mut client), id(&mut subscriber));
    subscriber.say("SUBSCRIBE __redis__:invalidate");
    let mut reader = server.client();
    let redirect = |id: i64| format!("CLIENT TRACKING ON REDIRECT {id}");
    assert_eq!(reader.say(&redirect(to_subscriber)), ok());
    reader.converse([("CLIENT GETREDIR", int(to_subscriber)), ("GET k", Value::Null)]);
    assert_eq!(other.say("SET k 1"), ok());
    let reported = |keys: Value| array([bulk("message"), bulk("__redis__:invalidate"), keys]);
    assert_eq!(subscriber.reply(), reported(array([bulk("k")])));
    assert_eq!(other.say("FLUSHALL"), ok());
    assert_eq!(subscriber.reply(), reported(Value::Null));
    assert_eq!(reader.say(&redirect(to_client)), ok());
    assert_eq!(reader.say("GET k"), Value::Null);
    assert_eq!(heard(&mut client, &mut other, &["SET k 2"]), [invalid(["k"])]);
    let Value::Bulk(list) = reader.say("CLIENT LIST") else { panic!("not a text") };
    assert!(String::from_utf8(list).expect("a text").contains(" flags=t db=0"), "it tracks");
    reader.converse([
        ("CLIENT TRACKING ON REDIRECT 999", error("ERR The client ID you want redirect to does not exist")),
        ("CLIENT TRACKING ON REDIRECT", error("ERR syntax error")),
        ("CLIENT TRACKING ON PREFIX a", error("ERR PREFIX option requires BCAST mode to be enabled")),
        ("CLIENT TRACKING ON OPTIN OPTOUT", error("ERR You can't specify both OPTIN mode and OPTOUT mode")),
        ("CLIENT TRACKING ON BCAST what", error("ERR syntax error")),
    ]);
}

#[test]
fn lost_receiver_is_reported() {
    let (server, mut client, mut other) = scene();
    let mut receiver = server.client();
    let Value::Integer(id) = receiver.say("CLIENT ID") else { panic!("no number") };
    assert_eq!(client.say(&format!("CLIENT TRACKING ON REDIRECT {id}")), ok());
    assert_eq!(client.say("GET k"), Value::Null);
    assert_eq!(other.say(&format!("CLIENT KILL ID {id}")), int(1));
    assert!(receiver.is_at_end());
    let broken = Value::Push(vec![bulk("tracking-redir-broken"), int(id)]);
    // The receiver may still be registered for a moment after its end.
    let reported = heard(&mut client, &mut other, &["SET k 1"]);
    if reported.is_empty() {
        assert_eq!(client.say("GET k"), bulk("1"));
        assert_eq!(heard(&mut client, &mut other, &["SET k 2"]), [broken]);
    } else {
        assert_eq!(reported, [broken]);
    }
    let Value::Map(info) = client.say("CLIENT TRACKINGINFO") else { panic!("no map") };
    assert_eq!(info[1], Value::Set(vec![bulk("on"), bulk("broken_redirect")]));
}

#[test]
fn full_table_forgets_some_keys() {
    let (_server, mut client, mut other) = scene();
    assert_eq!(other.say("CONFIG SET tracking-table-max-keys 1"), ok());
    client.converse([("CLIENT TRACKING ON", ok()), ("GET a", Value::Null)]);
    client.send(b"GET b\r\n");
    let first = client.reply();
    let (forgotten, reply) = if first == Value::Null { (client.reply(), first) } else { (first, client.reply()) };
    assert_eq!(reply, Value::Null);
    assert!(forgotten == invalid(["a"]) || forgotten == invalid(["b"]), "{forgotten:?}");
    // Also if the limit is lowered later.
    assert_eq!(other.say("CONFIG SET tracking-table-max-keys 0"), ok());
    assert_eq!(client.say("MGET a b c"), array([Value::Null, Value::Null, Value::Null]));
    assert_eq!(heard(&mut client, &mut other, &["CONFIG SET tracking-table-max-keys 1"]).len(), 2);
}

/// With `NOLOOP` no message reports the client's own change, so the client may cache the value that it reads next.
#[test]
fn reads_after_transaction_changes_are_tracked() {
    let (_server, mut client, mut other) = scene();
    client.converse([("CLIENT TRACKING ON NOLOOP", ok())]);
    let queued = || Value::Simple("QUEUED".into());
    for lines in [["SET k 1", "GET k"], ["INCR k", "STRLEN k"], ["DEL k", "EXISTS k"]] {
        client.converse([("MULTI", ok()), (lines[0], queued()), (lines[1], queued())]);
        assert!(matches!(client.say("EXEC"), Value::Array(_)));
        assert_eq!(heard(&mut client, &mut other, &["SET k 2"]), [invalid(["k"])], "{lines:?}");
    }
}
