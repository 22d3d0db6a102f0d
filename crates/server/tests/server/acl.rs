//! Who may do what.

use std::fs;

use crate::common::{TestServer, Value, array, bulk, error, int, ok};
use hikv::Store;
use server::{Config, Server, StopHandle};

fn protected() -> TestServer {
    TestServer::with(Config { threads: 2, password: Some("secret".into()), ..Config::default() })
}

fn wrong_password() -> Value {
    error("WRONGPASS invalid username-password pair or user is disabled.")
}

#[test]
fn a_password_is_wanted_first() {
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
fn nobody_listens_beyond_the_host_without_a_password() {
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
