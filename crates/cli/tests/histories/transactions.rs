//! Transactions of several kinds of commands, under SIGKILL: all that one has changed is there, or nothing.
//!
//! Each client counts up in keys of its own, in one `EXEC` a number: two values, a counter, a key that is renamed, one
//! that expires much later. After each kill the keys must all be of one number: the last one that was answered, or the
//! next.

use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use fastrand::Rng;

use crate::On;
use crate::client::{Answer, Client};
use crate::process::Process;

const CLIENT_COUNT: usize = 3;

/// Kills the server so many times, each after fewer than `answers_max` transactions.
pub(crate) fn rounds(on: On, round_count: u64, answers_max: usize, seed: u64) {
    let (home, mut rng) = (on.home(), Rng::with_seed(seed));
    let store = home.path().join("store");
    let mut done = [0u64; CLIENT_COUNT];
    for _ in 0..round_count {
        let server = Process::serve(&store);
        for (client, done) in done.iter_mut().enumerate() {
            *done = found(server.addr, client, *done);
        }
        let answer_count = rng.usize(..answers_max);
        let (answered, answers) = channel();
        thread::scope(|scope| {
            let (addr, threads) = (server.addr, done.iter_mut().enumerate());
            let threads: Vec<_> = threads
                .map(|(client, done)| {
                    let answered = answered.clone();
                    // A client that found no server any more has done nothing.
                    scope.spawn(move || _ = count_up(addr, client, done, &answered))
                })
                .collect();
            drop(answered);
            assert_eq!(answers.iter().take(answer_count).count(), answer_count, "clients gave up");
            server.kill();
            threads.into_iter().for_each(|thread| thread.join().expect("a client does not panic"));
        });
    }
    let server = Process::serve(&store);
    for (client, done) in done.into_iter().enumerate() {
        found(server.addr, client, done);
    }
    assert!(done.iter().sum::<u64>() > 0, "no transaction was answered");
}

fn count_up(addr: SocketAddr, client: usize, done: &mut u64, answered: &Sender<()>) -> io::Result<()> {
    let mut connection = Client::connect(addr)?;
    loop {
        let answers = transaction(&mut connection, client, *done + 1)?;
        assert_eq!(answers[1], Answer::Number(*done as i64 + 1), "the counter");
        assert_eq!(answers[5], Answer::Value(Some((*done + 1).to_string().into())), "it reads what it wrote");
        *done += 1;
        // The receiver has heard enough; the kill comes.
        let _ = answered.send(());
    }
}

/// Puts `number` everywhere.
fn transaction(connection: &mut Client, client: usize, number: u64) -> io::Result<Vec<Answer>> {
    let key = |name: &str| format!("{name}:{client}").into_bytes();
    let text = number.to_string().into_bytes();
    let (first, counter, old, new, session) = (key("first"), key("counter"), key("old"), key("new"), key("session"));
    connection.send(&[
        &[b"MULTI"],
        &[b"SET", &first, &text],
        &[b"INCR", &counter],
        &[b"SET", &old, &text],
        &[b"RENAME", &old, &new],
        &[b"SET", &session, &text, b"EX", b"10000"],
        &[b"GET", &new],
        &[b"EXEC"],
    ])?;
    for _ in 0..7 {
        connection.answer()?;
    }
    let Answer::All(answers) = connection.answer()? else { panic!("EXEC is not answered with an array") };
    Ok(answers)
}

/// The number that all of the client's keys are of: `done`, or the next one.
fn found(addr: SocketAddr, client: usize, done: u64) -> u64 {
    let mut connection = Client::connect(addr).expect("the server listens");
    let names = ["first", "counter", "new", "session", "old"].map(|name| format!("{name}:{client}").into_bytes());
    let [first, counter, new, session, old] = &names;
    let Ok(Answer::All(values)) = connection.call(&[b"MGET", first, counter, new, session, old]) else {
        panic!("MGET is not answered with an array");
    };
    let number = |answer: &Answer| match answer {
        Answer::Value(Some(text)) => str::from_utf8(text).unwrap().parse::<u64>().unwrap(),
        Answer::Value(None) => 0,
        other => panic!("MGET is answered {other:?}"),
    };
    let numbers: Vec<u64> = values[..4].iter().map(number).collect();
    assert!(numbers.iter().all(|number| *number == numbers[0]), "a transaction is half done: {numbers:?}");
    assert_eq!(values[4], Answer::Value(None), "the old key of RENAME is there");
    assert!((done..=done + 1).contains(&numbers[0]), "{done} transactions were answered, {} are there", numbers[0]);
    numbers[0]
}
