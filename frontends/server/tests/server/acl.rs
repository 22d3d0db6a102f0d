//! Users and their permissions.

use std::fs;

use crate::common::{Client, TestServer, Value, array, bulk, encode, error, int, ok};
use hikv::Store;
use server::{Config, Server, StopHandle};

fn protected() -> TestServer {
    TestServer::with(Config { threads: 2, password: Some("secret".into()), ..Config::default() })
}

fn wrong_password() -> Value {
    error("WRONGPASS invalid username-password pair or user is disabled.")
}

#[test]
fn password_is_wanted_first() {
    let server = protected();
    let mut client = server.client();
    client.converse([
        ("GET k", error("NOAUTH Authentication required.")),
        ("AUTH wrong", wrong_password()),
        ("AUTH nobody secret", wrong_password()),
        ("HELLO 3 AUTH default wrong", wrong_password()),
        ("AUTH secret", ok()),
        ("GET k", Value::Null),
        ("CONFIG GET requirepass", array([bulk("requirepass"), bulk("")])),
    ]);
    let open = TestServer::start();
    let text = "ERR AUTH <password> called without any password configured for the default user. Are you sure your \
                configuration is correct?";
    assert_eq!(open.client().say("AUTH secret"), error(text));
}

#[test]
fn users_have_commands_keys_and_channels() {
    let server = TestServer::start();
    let (mut admin, mut client) = (server.client(), server.client());
    admin.converse([
        ("ACL SETUSER ada on >pw ~a:* %R~r:* &news +@all -@dangerous", ok()),
        ("ACL SETUSER ada +nothing", {
            error("ERR Error in ACL SETUSER modifier '+nothing': Unknown command or category name in ACL")
        }),
        ("ACL WHOAMI", bulk("default")),
        ("ACL USERS", array([bulk("ada"), bulk("default")])),
    ]);
    let key = error("NOPERM this user has no permissions to access one of the keys used as arguments");
    client.converse([
        ("AUTH ada pw", ok()),
        ("SET a:1 v", ok()),
        ("SET b:1 v", key.clone()),
        ("GET r:1", Value::Null),
        ("SET r:1 v", key.clone()),
        ("MGET a:1 b:1", key.clone()),
        ("COPY r:1 a:2", int(0)),
        ("COPY a:1 r:2", key),
        ("FLUSHALL", error("NOPERM this user has no permissions to run the 'flushall' command")),
        ("CONFIG GET *", error("NOPERM this user has no permissions to run the 'config|get' command")),
        (
            "PUBLISH other x",
            error("NOPERM this user has no permissions to access one of the channels used as arguments"),
        ),
        ("PUBLISH news x", int(0)),
    ]);
    let Value::Array(log) = admin.say("ACL LOG 1") else { panic!("not an array") };
    assert!(format!("{log:?}").contains("$5:other") && !format!("{log:?}").contains("pw"), "{log:?}");
    admin.converse([
        ("ACL DRYRUN ada GET a:1", ok()),
        ("ACL LOG RESET", ok()),
        ("ACL LOG", array([])),
        ("ACL SETUSER ada -get", ok()),
    ]);
    assert_eq!(client.say("GET a:1"), error("NOPERM this user has no permissions to run the 'get' command"));
    assert_eq!(admin.say("ACL DELUSER ada nobody"), int(1));
    assert!(client.is_at_end());
}

#[test]
fn users_are_kept_in_a_file() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("users.acl");
    fs::write(&path, "user default on nopass ~* &* +@all\nuser ada on >pw +ping\n").expect("the file is written");
    let server = TestServer::with(Config { acl_file: Some(path.clone()), threads: 1, ..Config::default() });
    let mut client = server.client();
    client.converse([
        ("ACL SETUSER bob on nopass +ping", ok()),
        ("ACL SAVE", ok()),
        ("ACL DELUSER bob", int(1)),
        ("ACL LOAD", ok()),
        ("ACL USERS", array([bulk("ada"), bulk("bob"), bulk("default")])),
    ]);
    let text = fs::read_to_string(&path).expect("the file is read");
    assert!(text.contains("user bob on nopass") && !text.contains(">pw"), "{text}");
}

#[test]
fn remote_listen_requires_password() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let store = Store::open(dir.path()).expect("the store opens");
    let bind = |config: Config| {
        let config = Config { addrs: vec!["0.0.0.0:0".into()], ..config };
        Server::bind(store.clone(), config, StopHandle::new()).map(|server| server.local_addrs().next())
    };
    let refused = bind(Config::default()).expect_err("everybody could do everything");
    assert!(refused.to_string().contains("0.0.0.0:0"), "{refused}");
    assert!(bind(Config { password: Some("secret".into()), ..Config::default() }).is_ok());
    assert!(bind(Config { protected: false, ..Config::default() }).is_ok());
}

#[test]
fn ordered_commands_stay_within_one_pattern() {
    let server = TestServer::start();
    let mut admin = server.client();
    admin.converse([
        ("MSET app:1 one app:2 two secret:1 hidden", ok()),
        ("ACL SETUSER ada on >pw ~app:* %W~* %R~x[yz]* +@all", ok()),
        ("ACL SETUSER bob on >pw %R~* +@all", ok()),
    ]);
    let refused = error("NOPERM this user has no permissions to access one of the keys used as arguments");
    let mut client = server.client();
    client.converse([
        ("AUTH ada pw", ok()),
        ("PREFIX app:", array([bulk("app:1"), bulk("one"), bulk("app:2"), bulk("two")])),
        ("PREFIX app:2 VALUES", array([bulk("two")])),
        ("RANGE app:1 app:9 KEYS", array([bulk("app:1"), bulk("app:2")])),
        ("RANGE app:9 app:1 REV LIMIT 1", array([bulk("app:2"), bulk("two")])),
        ("COUNTRANGE app: app:~", int(2)),
    ]);
    for line in
        ["PREFIX app", "PREFIX secret:", "PREFIX xy", "RANGE - +", "RANGE + - REV", "RANGE app:1 +", "RANGE - app:1"]
    {
        assert_eq!(client.say(line), refused, "{line}");
    }
    for line in ["RANGE app:1 secret:2", "RANGE app:1 b", "COUNTRANGE - +", "COUNTRANGE secret:1 secret:1"] {
        assert_eq!(client.say(line), refused, "{line}");
    }
    client.converse([("MULTI", ok()), ("RANGE - +", refused.clone())]);
    let denied = bulk("This user has no permissions to access the 'secret:' key");
    assert_eq!(admin.say("ACL DRYRUN ada PREFIX secret:"), denied);
    client.converse([("DISCARD", ok()), ("AUTH bob pw", ok()), ("COUNTRANGE - +", int(3))]);
    client.converse([("PREFIX s VALUES", array([bulk("hidden")])), ("SET app:1 x", refused)]);
}

#[test]
fn one_pattern_grants_all_needed_rights() {
    let server = TestServer::start();
    let (mut admin, mut client) = (server.client(), server.client());
    admin.converse([
        ("ACL SETUSER ada on >pw %R~a* %W~*b %W~w* %R~both %W~both +@all", ok()),
        ("MSET ab 1 both 1", ok()),
    ]);
    let refused = error("NOPERM this user has no permissions to access one of the keys used as arguments");
    client.converse([
        ("AUTH ada pw", ok()),
        ("GET ab", bulk("1")),
        ("INCR ab", refused.clone()),
        ("INCR both", int(2)),
        ("SET w v", ok()),
        ("SET w v NX EX 100", Value::Null),
        ("SET w v GET", refused.clone()),
        ("SET w v eX 100 gEt", refused.clone()),
        ("GETSET w v", refused.clone()),
        ("GET w", refused.clone()),
        ("STRLEN w", int(1)),
        ("EXISTS w", int(1)),
        ("APPEND w v", int(2)),
        ("BITFIELD ab GET u8 0", array([int(49)])),
        ("BITFIELD ab SET u8 0 1", refused.clone()),
        ("BITFIELD w GET u8 0", refused),
    ]);
}

/// A transaction reduces its own user's rights; the following commands of the transaction have only the rights left.
#[test]
fn transactions_reduce_their_own_rights() {
    let server = TestServer::start();
    let (mut admin, mut client) = (server.client(), server.client());
    let denied = |reason| {
        let rules = "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call.";
        error(&format!("{rules} This command is no longer allowed for the following reason: {reason}"))
    };
    let cases = [
        ("-get", "GET k", denied("no permission to execute the command or subcommand")),
        ("resetkeys ~other", "GET k", denied("no permission to touch the specified keys")),
        ("resetchannels", "SUBSCRIBE c", denied("no permission to access one of the channels used as arguments")),
    ];
    for (rule, request, denied) in cases {
        assert_eq!(admin.say("ACL SETUSER ada reset on nopass ~* &* +@all"), ok());
        let queued = Value::Simple("QUEUED".into());
        client.converse([
            ("AUTH ada x", ok()),
            ("MULTI", ok()),
            (&format!("ACL SETUSER ada {rule}"), queued.clone()),
            (request, queued.clone()),
            ("ECHO on", queued),
            ("EXEC", array([ok(), denied, bulk("on")])),
        ]);
    }
    client.send(b"MULTI\r\nACL DELUSER ada\r\nSET k 1\r\nEXEC\r\n");
    let mut reply = Value::Null;
    (0..4).for_each(|_| reply = client.reply());
    assert_eq!(reply, array([int(1), error("NOAUTH Authentication required.")]));
    assert!(client.is_at_end());
    assert_eq!(admin.say("GET k"), Value::Null);
}

/// Collects every word of a reply.
fn words(value: &Value, found: &mut Vec<Vec<u8>>) {
    match value {
        Value::Bulk(bytes) => found.push(bytes.clone()),
        Value::Simple(text) | Value::Error(text) | Value::Text(text) | Value::Other(text) => {
            found.push(text.clone().into_bytes());
        }
        Value::Array(values) | Value::Map(values) | Value::Set(values) | Value::Push(values) => {
            values.iter().for_each(|value| words(value, found));
        }
        Value::Integer(_) | Value::Null => {}
    }
}

/// Returns the commands and subcommands of the server, with their minimum number of arguments.
fn commands(client: &mut Client) -> Vec<(String, usize)> {
    fn add(rows: &[Value], found: &mut Vec<(String, usize)>) {
        for row in rows {
            let Value::Array(row) = row else { panic!("not a row: {row:?}") };
            let (Value::Bulk(name), Value::Integer(arity), Value::Array(subcommands)) = (&row[0], &row[1], &row[9])
            else {
                panic!("not a row: {row:?}")
            };
            found.push((String::from_utf8_lossy(name).into_owned(), arity.unsigned_abs() as usize));
            add(subcommands, found);
        }
    }
    let Value::Array(rows) = client.say("COMMAND") else { panic!("not an array") };
    let mut found = Vec::new();
    add(&rows, &mut found);
    assert!(found.len() > 150, "{found:?}");
    found
}

/// Calls each command as user `name` in many ways. Returns the commands that reveal a value, and those that reveal the
/// name of a key that was not given.
fn sweep(server: &TestServer, name: &str) -> (Vec<String>, Vec<String>) {
    // These end the server or the connection, or block others.
    const LEFT_OUT: [&str; 4] = ["shutdown", "client|reply", "client|pause", "debug"];
    let fillers: [&[&str]; 7] = [
        &["secret:1"],
        &["secret:"],
        &["-", "+"],
        &["secret:0", "secret:9"],
        &["*"],
        &["secret:1", "0", "99"],
        &["secret:1", "x", "GET"],
    ];
    let mut admin = server.client();
    let (mut values, mut names) = (Vec::new(), Vec::new());
    for (command, arity) in commands(&mut admin).into_iter().filter(|(name, _)| !LEFT_OUT.contains(&name.as_str())) {
        let start: Vec<&str> = command.split('|').collect();
        for (filler, more) in fillers.iter().flat_map(|filler| (0..3).map(move |more| (filler, more))) {
            assert_eq!(admin.say("MSET secret:1 hidden secret:2 hidden"), ok());
            let fill = filler.iter().cycle().take((arity + more).saturating_sub(start.len()));
            let request: Vec<&str> = start.iter().chain(fill).copied().collect();
            let mut client = server.client();
            assert_eq!(client.say(&format!("AUTH {name} pw")), ok());
            client.send(&encode(&request));
            let mut reported = Vec::new();
            words(&client.reply(), &mut reported);
            let contains =
                |word: &[u8]| reported.iter().any(|reported| reported.windows(word.len()).any(|part| part == word));
            values.extend(contains(b"hidden").then(|| command.clone()));
            names.extend(contains(b"secret:2").then(|| command.clone()));
        }
    }
    (values, names)
}

#[test]
fn no_command_reveals_forbidden_keys() {
    let server = TestServer::start();
    server
        .client()
        .converse([("ACL SETUSER all on >pw ~* &* +@all", ok()), ("ACL SETUSER ada on >pw ~app:* %W~* +@all", ok())]);
    let (values, names) = sweep(&server, "ada");
    assert_eq!(values, Vec::<String>::new());
    // As in Redis, the permission for these commands covers the names of all keys.
    let exempt = ["keys", "randomkey", "scan"];
    assert!(names.iter().all(|name| exempt.contains(&name.as_str())), "{names:?}");
    // A leak would be detected.
    let (values, _) = sweep(&server, "all");
    for name in ["dump", "get", "getdel", "getex", "getrange", "getset", "mget", "prefix", "range", "set", "substr"] {
        assert!(values.iter().any(|value| value == name), "{name} does not tell a value: {values:?}");
    }
}

#[test]
fn subscriber_losing_permission_is_closed() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("users.acl");
    fs::write(&path, "user eve on nopass &* +@all\nuser max on nopass &* +@all\n").expect("the file is written");
    let server = TestServer::with(Config { acl_file: Some(path.clone()), threads: 2, ..Config::default() });
    let mut admin = server.client();
    let listener = |name: &str, line: &str| {
        let mut client = server.client();
        client.converse([(&format!("AUTH {name} pw"), ok())]);
        client.say(line);
        client
    };
    let rules = "on nopass &news &new* +@all";
    assert_eq!(admin.say(&format!("ACL SETUSER ada {rules}")), ok());
    for (line, rule) in [
        ("SUBSCRIBE news", "resetchannels"),
        ("SSUBSCRIBE newest", "resetchannels &news"),
        ("PSUBSCRIBE new*", "resetchannels &news &newest"),
        ("MONITOR", "-monitor"),
    ] {
        let (mut lost, mut kept) = (listener("ada", line), listener("ada", "SUBSCRIBE news"));
        let other = listener("max", line);
        assert_eq!(admin.say(&format!("ACL SETUSER ada {rule} +ping")), ok(), "{line}");
        lost.rest();
        assert_eq!(admin.say(&format!("ACL SETUSER ada {rules}")), ok());
        if rule != "resetchannels" {
            admin.say("PUBLISH news x");
            assert_eq!(kept.reply(), array([bulk("message"), bulk("news"), bulk("x")]));
        }
        drop(other);
    }
    // A client that removes its own permissions gets its reply first.
    let mut own = listener("ada", "HELLO 3");
    own.say("SUBSCRIBE news");
    assert_eq!(own.say("ACL SETUSER ada resetchannels"), ok());
    assert!(own.is_at_end());

    let (mut deleted, mut gone, mut less) =
        (listener("ada", "PING"), listener("eve", "SUBSCRIBE news"), listener("max", "SUBSCRIBE news"));
    assert_eq!(admin.say("ACL DELUSER ada"), int(1));
    assert!(deleted.is_at_end());
    fs::write(&path, "user max on nopass resetchannels &other +@all\n").expect("the file is written");
    assert_eq!(admin.say("ACL LOAD"), ok());
    assert!(gone.is_at_end() && less.is_at_end());
    assert_eq!(admin.say("PING"), Value::Simple("PONG".into()));
}
