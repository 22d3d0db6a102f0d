//! Tests transactions of several kinds of commands under SIGKILL: all changes of a transaction exist, or none.
//!
//! Each client has separate keys and counts up in them, one `EXEC` or script per number: two values, a counter, a
//! renamed key, and a key with a distant expiry. After each kill all keys must have the same number: the last
//! acknowledged one, or the next.

use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use fastrand::Rng;

use crate::On;
use crate::client::{Answer, Client};
use crate::process::Process;

const CLIENT_COUNT: usize = 3;

/// The way in which clients send the commands of one number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Asked {
    /// In one `EXEC`.
    AsTransaction,
    /// In one script, of which every eighth takes so long that it starts again in the background.
    AsScript,
    /// Broken variant: each command is sent after the reply to the previous one.
    OneByOne,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Rounds {
    pub(crate) on: On,
    pub(crate) asked: Asked,
    /// The number of kills.
    pub(crate) count: u64,
    /// Upper bound of the transactions in a round.
    pub(crate) answers_max: usize,
    pub(crate) seed: u64,
}

impl Rounds {
    /// Returns the number of acknowledged transactions.
    ///
    /// # Errors
    /// A description of a transaction that is half done.
    pub(crate) fn judge(self) -> Result<u64, String> {
        let (home, mut rng) = (self.on.home(), Rng::with_seed(self.seed));
        let store = home.path().join("store");
        let mut done = [0u64; CLIENT_COUNT];
        for _ in 0..self.count {
            let server = Process::serve(&store);
            find_all(server.addr, &mut done)?;
            let answer_count = rng.usize(..self.answers_max);
            let (answered, answers) = channel();
            thread::scope(|scope| {
                let (addr, threads) = (server.addr, done.iter_mut().enumerate());
                let threads: Vec<_> = threads
                    .map(|(client, done)| {
                        let answered = answered.clone();
                        // An error means that the server was killed first: the client has done nothing.
                        scope.spawn(move || _ = count_up(addr, self.asked, client, done, &answered))
                    })
                    .collect();
                drop(answered);
                assert_eq!(answers.iter().take(answer_count).count(), answer_count, "clients gave up");
                server.kill();
                threads.into_iter().for_each(|thread| thread.join().expect("a client does not panic"));
            });
        }
        find_all(Process::serve(&store).addr, &mut done)?;
        Ok(done.iter().sum())
    }
}

fn count_up(addr: SocketAddr, asked: Asked, client: usize, done: &mut u64, answered: &Sender<()>) -> io::Result<()> {
    let mut connection = Client::connect(addr)?;
    loop {
        let answers = transaction(&mut connection, asked, client, *done + 1)?;
        assert_eq!(answers[1], Answer::Number(*done as i64 + 1), "the counter");
        assert_eq!(answers[5], Answer::Value(Some((*done + 1).to_string().into())), "it reads what it wrote");
        *done += 1;
        // An error means that the receiver has counted enough replies, and the kill follows.
        let _ = answered.send(());
    }
}

/// Executes the commands in `ARGV`, each after the number of its words, and returns their replies.
const SCRIPT: &str = "local replies, at = {}, 2 \
    while ARGV[at] do \
        local last = at + tonumber(ARGV[at]) \
        replies[#replies + 1] = redis.call(unpack(ARGV, at + 1, last)) \
        at = last + 1 \
    end \
    local n = 0 \
    for i = 1, tonumber(ARGV[1]) do n = n + i end \
    return replies";

fn call_script(connection: &mut Client, number: u64, commands: &[&[&[u8]]]) -> io::Result<Answer> {
    let rounds: &[u8] = if number.is_multiple_of(8) { b"2000000" } else { b"0" };
    let counts: Vec<Vec<u8>> = commands.iter().map(|command| command.len().to_string().into_bytes()).collect();
    let mut request: Vec<&[u8]> = vec![b"EVAL", SCRIPT.as_bytes(), b"0", rounds];
    for (count, command) in counts.iter().zip(commands) {
        request.push(count);
        request.extend_from_slice(command);
    }
    connection.call(&request)
}

/// Writes `number` to all keys of the client.
fn transaction(connection: &mut Client, asked: Asked, client: usize, number: u64) -> io::Result<Vec<Answer>> {
    let key = |name: &str| format!("{name}:{client}").into_bytes();
    let text = number.to_string().into_bytes();
    let (first, counter, old, new, session) = (key("first"), key("counter"), key("old"), key("new"), key("session"));
    let commands: [&[&[u8]]; 6] = [
        &[b"SET", &first, &text],
        &[b"INCR", &counter],
        &[b"SET", &old, &text],
        &[b"RENAME", &old, &new],
        &[b"SET", &session, &text, b"EX", b"10000"],
        &[b"GET", &new],
    ];
    if asked == Asked::OneByOne {
        return commands.iter().map(|command| connection.call(command)).collect();
    }
    if asked == Asked::AsScript {
        let Answer::All(answers) = call_script(connection, number, &commands)? else { panic!("EVAL has no array") };
        return Ok(answers);
    }
    let (begin, end): (&[&[u8]], &[&[u8]]) = (&[b"MULTI"], &[b"EXEC"]);
    connection.send(&[&[begin], &commands[..], &[end]].concat())?;
    for _ in 0..=commands.len() {
        connection.answer()?;
    }
    let Answer::All(answers) = connection.answer()? else { panic!("EXEC is not answered with an array") };
    Ok(answers)
}

/// Sets each client's number to the one in its keys.
fn find_all(addr: SocketAddr, done: &mut [u64]) -> Result<(), String> {
    done.iter_mut().enumerate().try_for_each(|(client, done)| found(addr, client, *done).map(|number| *done = number))
}

/// Returns the number in all of the client's keys, which must be `done` or the next one.
fn found(addr: SocketAddr, client: usize, done: u64) -> Result<u64, String> {
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
    let number = numbers[0];
    if numbers.iter().any(|other| *other != number) || values[4] != Answer::Value(None) {
        return Err(format!("a transaction is half done: {numbers:?}, and of RENAME's old key {:?}", values[4]));
    }
    if !(done..=done + 1).contains(&number) {
        return Err(format!("{done} transactions were answered, {number} are there"));
    }
    Ok(number)
}
