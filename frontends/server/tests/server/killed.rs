//! CLIENT KILL and ACL commands that disconnect clients.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::common::{TestServer, Value, array, bulk, error, int, ok};

#[test]
fn clients_are_killed() {
    let server = TestServer::start();
    let (mut client, mut other) = (server.client(), server.client());
    assert_eq!(other.say("PING"), Value::Simple("PONG".into()));
    client.converse([
        ("CLIENT KILL 1.2.3.4:5", error("ERR No such client")),
        ("CLIENT KILL ID 2", int(1)),
        ("CLIENT KILL ID 0", error("ERR client-id should be greater than 0")),
        ("CLIENT KILL USER nobody", error("ERR No such user 'nobody'")),
    ]);
    assert!(other.is_at_end());
    assert_eq!(client.say("CLIENT KILL SKIPME no"), int(1));
    assert!(client.is_at_end());
}

/// The pipelines leave the killed clients' event loop no time to close their connections.
#[test]
fn killed_clients_are_neither_counted_nor_listed() {
    let server = TestServer::single();
    let mut killer = server.client();
    for is_transaction in [false, true] {
        let (mut subscriber, mut tracker) = (server.client(), server.client());
        for request in ["SUBSCRIBE c", "PSUBSCRIBE c*", "SSUBSCRIBE s"] {
            subscriber.say(request);
        }
        let Value::Integer(id) = tracker.say("CLIENT ID") else { panic!("not a number") };
        assert_eq!(tracker.say("CLIENT TRACKING ON"), ok());
        let requests = [
            ("CLIENT KILL TYPE pubsub".to_string(), int(1)),
            ("CLIENT KILL TYPE pubsub".to_string(), int(0)),
            (format!("CLIENT KILL ID {id}"), int(1)),
            (format!("CLIENT KILL ID {id}"), int(0)),
            (format!("CLIENT LIST ID {id}"), bulk("")),
            (
                format!("CLIENT TRACKING ON REDIRECT {id}"),
                error("ERR The client ID you want redirect to does not exist"),
            ),
            ("PUBLISH c m".to_string(), int(0)),
            ("SPUBLISH s m".to_string(), int(0)),
            ("PUBSUB NUMSUB c".to_string(), array([bulk("c"), int(0)])),
            ("PUBSUB NUMPAT".to_string(), int(0)),
            ("PUBSUB CHANNELS".to_string(), array([])),
        ];
        let mut pipeline: Vec<&str> = requests.iter().map(|(request, _)| request.as_str()).collect();
        if is_transaction {
            pipeline = [vec!["MULTI"], pipeline, vec!["EXEC"]].concat();
        }
        killer.send(format!("{}\r\n", pipeline.join("\r\n")).as_bytes());
        let wanted = requests.map(|(_, wanted)| wanted);
        if is_transaction {
            assert_eq!(killer.reply(), ok());
            wanted.iter().for_each(|_| assert_eq!(killer.reply(), Value::Simple("QUEUED".into())));
            assert_eq!(killer.reply(), array(wanted));
        } else {
            wanted.into_iter().for_each(|wanted| assert_eq!(killer.reply(), wanted));
        }
        assert!(subscriber.is_at_end() && tracker.is_at_end());
        // The closed connections are not counted a second time.
        let mut next = server.client();
        next.say("SUBSCRIBE c");
        assert_eq!(killer.say("PUBSUB NUMSUB c"), array([bulk("c"), int(1)]));
        assert_eq!(killer.say("CLIENT KILL TYPE pubsub"), int(1));
        assert!(next.is_at_end());
    }
}

/// The victim sends endless pipelines, on another loop and on the same one, until its connection is closed.
#[test]
fn killed_client_executes_nothing_after_reply() {
    const ROUNDS: usize = 40;
    let server = TestServer::start();
    let mut killer = server.client();
    let kills: [&[&str]; 8] = [
        &["CLIENT KILL ID {id}"],
        &["CLIENT KILL ADDR {addr}"],
        &["CLIENT KILL {addr}"],
        &["CLIENT KILL TYPE normal"],
        &["CLIENT KILL USER ada"],
        &["ACL DELUSER ada"],
        &["MULTI", "CLIENT KILL ID {id}", "EXEC"],
        &["MULTI", "KEYS absent", "CLIENT KILL ID {id}", "EXEC"],
    ];
    for round in 0..ROUNDS {
        let kill = kills[round % kills.len()];
        killer.say("ACL SETUSER ada on nopass ~* +@all");
        let mut victim = server.client();
        assert_eq!(victim.say("AUTH ada x"), ok());
        let Value::Integer(id) = victim.say("CLIENT ID") else { panic!("not a number") };
        let addr = victim.addr().to_string();
        let (sends, pipeline) = (AtomicBool::new(false), b"INCR count\r\n".repeat(200));
        thread::scope(|scope| {
            scope.spawn(|| {
                while victim.try_send(&pipeline).is_ok() && victim.try_skip() {
                    sends.store(true, Ordering::Relaxed);
                }
            });
            while !sends.load(Ordering::Relaxed) {
                thread::yield_now();
            }
            for line in kill {
                killer.say(&line.replace("{id}", &id.to_string()).replace("{addr}", &addr));
            }
            let count = killer.say("GET count");
            // Replies of either loop, after everything that each had to do before.
            (0..20).for_each(|_| drop(server.client().say("PING")));
            assert_eq!(killer.say("GET count"), count, "{kill:?} in round {round}");
        });
    }
}
