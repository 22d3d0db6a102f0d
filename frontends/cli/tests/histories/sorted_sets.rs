//! Tests sorted sets under SIGKILL: both orders of a sorted set have the same members, as many as its record says.
//!
//! Each client changes its own sorted set and one that all clients share, in one transaction per change. After each
//! kill the shared one must be the union of the others, in the order of scores as well as in that of `ZSCAN`.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use fastrand::Rng;

use crate::On;
use crate::client::{Answer, Client};
use crate::process::Process;

const CLIENT_COUNT: u64 = 3;
const MEMBER_COUNT: u32 = 30;
const SHARED: &[u8] = b"shared";

#[derive(Clone, Copy, Debug)]
pub(crate) struct Rounds {
    pub(crate) on: On,
    /// Broken variant: the two changes are separate.
    pub(crate) is_torn: bool,
    /// The number of kills.
    pub(crate) count: u64,
    /// Upper bound of the changes in a round.
    pub(crate) answers_max: usize,
    pub(crate) seed: u64,
}

impl Rounds {
    /// Returns the number of members at the end.
    ///
    /// # Errors
    /// A description of a sorted set that is wrong.
    pub(crate) fn judge(self) -> Result<usize, String> {
        let (home, mut rng) = (self.on.home(), Rng::with_seed(self.seed));
        let store = home.path().join("store");
        for _ in 0..self.count {
            let server = Process::serve(&store);
            check(server.addr)?;
            let answer_count = 1 + rng.usize(..self.answers_max);
            let (answered, answers) = channel();
            thread::scope(|scope| {
                let addr = server.addr;
                for client in 0..CLIENT_COUNT {
                    let (answered, mut rng) = (answered.clone(), rng.fork());
                    // An error means that the server was killed first.
                    scope.spawn(move || _ = change(addr, client, self.is_torn, &mut rng, &answered));
                }
                drop(answered);
                assert_eq!(answers.iter().take(answer_count).count(), answer_count, "clients gave up");
                server.kill();
            });
        }
        check(Process::serve(&store).addr)
    }
}

fn own_key(client: u64) -> Vec<u8> {
    format!("own:{client}").into_bytes()
}

fn change(addr: SocketAddr, client: u64, is_torn: bool, rng: &mut Rng, answered: &Sender<()>) -> io::Result<()> {
    let (mut connection, own) = (Client::connect(addr)?, own_key(client));
    loop {
        let member = format!("{client}:{}", rng.u32(..MEMBER_COUNT)).into_bytes();
        let score = rng.i32(-5..5).to_string().into_bytes();
        let command = |key| match &score[..] {
            b"0" | b"-1" => vec![&b"ZREM"[..], key, &member],
            b"1" => vec![b"ZINCRBY", key, &score, &member],
            score => vec![b"ZADD", key, score, &member],
        };
        let (first, second) = (command(&own), command(SHARED));
        if is_torn {
            connection.call(&first)?;
            connection.call(&second)?;
        } else {
            connection.send(&[&[b"MULTI"], &first, &second, &[b"EXEC"]])?;
            for _ in 0..4 {
                connection.answer()?;
            }
        }
        // An error means that the receiver has counted enough replies, and the kill follows.
        let _ = answered.send(());
    }
}

type Members = BTreeMap<Vec<u8>, Vec<u8>>;

/// Checks all sorted sets, and returns the number of members of the shared one.
fn check(addr: SocketAddr) -> Result<usize, String> {
    let mut connection = Client::connect(addr).expect("the server listens");
    let mut union = Members::new();
    for client in 0..CLIENT_COUNT {
        union.extend(read(&mut connection, &own_key(client))?);
    }
    let shared = read(&mut connection, SHARED)?;
    if shared == union { Ok(shared.len()) } else { Err(format!("a change is half done: {shared:?}, {union:?}")) }
}

/// Reads a sorted set in both orders, which must agree.
fn read(connection: &mut Client, key: &[u8]) -> Result<Members, String> {
    let mut ask = |request: &[&[u8]]| connection.call(request).expect("the server answers");
    let by_score = members(ask(&[b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"]));
    let Answer::All(scanned) = ask(&[b"ZSCAN", key, b"0", b"COUNT", b"1000"]) else { panic!("no cursor") };
    assert_eq!(scanned[0], Answer::Value(Some(b"0".to_vec())), "few members are scanned at once");
    let by_member = members(scanned[1].clone());
    let count = ask(&[b"ZCARD", key]);
    if by_score != by_member || count != Answer::Number(by_score.len() as i64) {
        return Err(format!("orders differ: {by_score:?}, {by_member:?}, {count:?}"));
    }
    Ok(by_score)
}

fn members(answer: Answer) -> Members {
    let Answer::All(values) = answer else { panic!("no array: {answer:?}") };
    let text = |answer: &Answer| match answer {
        Answer::Value(Some(text)) => text.clone(),
        other => panic!("no text: {other:?}"),
    };
    values.chunks(2).map(|pair| (text(&pair[0]), text(&pair[1]))).collect()
}
