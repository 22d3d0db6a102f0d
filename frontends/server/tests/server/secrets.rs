//! Passwords are never shown.

use crate::common::{TestServer, Value, ok};
use server::{Config, Secret};

const PASSWORDS: [&str; 4] = ["hush-first", "hush-second", "hush-third", "hush-wrong"];

#[test]
fn no_command_shows_a_password() {
    let config = Config { threads: 2, password: Some(Secret::from(PASSWORDS[0])), ..Config::default() };
    assert!(!format!("{config:?}").contains("hush"));
    let server = TestServer::with(config);
    let mut watcher = server.client();
    watcher.converse([("AUTH hush-first", ok()), ("CONFIG SET slowlog-log-slower-than 0", ok())]);
    let mut monitor = server.client();
    monitor.converse([("AUTH hush-first", ok()), ("MONITOR", ok())]);

    let mut client = server.client();
    client.say("AUTH hush-wrong");
    client.say("HELLO 3 AUTH default hush-wrong");
    client.say("HELLO 2 AUTH default hush-first SETNAME me");
    client.converse([
        ("ACL SETUSER ada on >hush-second ~* +@all", ok()),
        ("AUTH ada hush-second", ok()),
        ("CONFIG SET requirepass hush-third", ok()),
        ("AUTH hush-third", ok()),
        ("MULTI", ok()),
    ]);
    client.say("AUTH default hush-third");
    client.say("EXEC");
    client.say("GET last");

    for surface in [
        "SLOWLOG GET 100",
        "ACL LOG",
        "ACL LIST",
        "ACL USERS",
        "ACL GETUSER ada",
        "CLIENT LIST",
        "CLIENT INFO",
        "CONFIG GET *",
        "INFO everything",
        "LATENCY LATEST",
        "COMMAND DOCS auth",
    ] {
        check(surface, &watcher.say(surface));
    }
    let mut seen = String::new();
    while !seen.contains("\"last\"") {
        let line = monitor.line();
        assert!(PASSWORDS.iter().all(|password| !line.contains(password)), "MONITOR shows {line}");
        seen.push_str(&line);
    }
    // It has seen them.
    assert!(seen.contains("\"AUTH\" \"(redacted)\"") && seen.contains("\"HELLO\" \"2\" \"(redacted)\""), "{seen}");
}

fn check(surface: &str, value: &Value) {
    match value {
        Value::Bulk(bytes) => {
            let text = String::from_utf8_lossy(bytes);
            assert!(PASSWORDS.iter().all(|password| !text.contains(password)), "{surface} shows {text}");
        }
        Value::Simple(text) | Value::Text(text) | Value::Other(text) => {
            assert!(PASSWORDS.iter().all(|password| !text.contains(password)), "{surface} shows {text}");
        }
        Value::Error(text) => panic!("{surface} is refused: {text}"),
        Value::Array(values) | Value::Map(values) | Value::Set(values) | Value::Push(values) => {
            values.iter().for_each(|value| check(surface, value));
        }
        Value::Integer(_) | Value::Null => {}
    }
}
