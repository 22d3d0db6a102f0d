//! Tests collections of all types under SIGKILL: nothing acknowledged is lost, each command is done or not, and counts
//! are those of the elements.
//!
//! Each client has keys of its own, of which it knows the values after each reply. After a kill they must be as after
//! its last acknowledged command, or as after the one that was not answered. All clients move jobs between two lists
//! that they share: the jobs must stay the same ones. They also count in a shared hash: the sum must be that of the
//! acknowledged commands, and at most one more per client.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use fastrand::Rng;

use crate::On;
use crate::client::{Answer, Client};
use crate::process::Process;

const CLIENT_COUNT: usize = 3;
/// The number of different fields and members.
const NAME_COUNT: u32 = 12;
const JOB_COUNT: usize = 40;
const LIST_COUNT_MAX: usize = 30;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Rounds {
    pub(crate) on: On,
    /// Broken variant: a job is taken from one list, and put into the other by another command.
    pub(crate) is_torn: bool,
    /// The number of kills.
    pub(crate) count: u64,
    /// Upper bound of the commands in a round.
    pub(crate) answers_max: usize,
    pub(crate) seed: u64,
}

/// The value of a key.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Value {
    Hash(BTreeMap<Vec<u8>, Vec<u8>>),
    Set(BTreeSet<Vec<u8>>),
    List(VecDeque<Vec<u8>>),
    SortedSet(BTreeMap<Vec<u8>, i64>),
}

impl Value {
    fn is_empty(&self) -> bool {
        match self {
            Value::Hash(fields) => fields.is_empty(),
            Value::Set(members) => members.is_empty(),
            Value::List(elements) => elements.is_empty(),
            Value::SortedSet(members) => members.is_empty(),
        }
    }
}

type Values = BTreeMap<Vec<u8>, Value>;

/// A command, and the values of the client's keys after it.
struct Step {
    request: Vec<Vec<u8>>,
    after: Values,
    counted: u64,
}

/// The state that a client knows from its replies.
#[derive(Default)]
struct Known {
    values: Values,
    /// The values after the command that has no reply yet.
    next: Option<Values>,
    /// The sum that it has added to the shared count.
    counted: u64,
    counting: u64,
    answer_count: u64,
}

impl Rounds {
    /// Returns the number of acknowledged commands.
    ///
    /// # Errors
    /// A description of a value that is wrong.
    pub(crate) fn judge(self) -> Result<u64, String> {
        let (home, mut rng) = (self.on.home(), Rng::with_seed(self.seed));
        let store = home.path().join("store");
        let mut known: Vec<Known> = (0..CLIENT_COUNT).map(|_| Known::default()).collect();
        for round in 0..self.count {
            let server = Process::serve(&store);
            if round == 0 {
                offer_jobs(server.addr);
            } else {
                check(server.addr, &mut known)?;
            }
            let answer_count = 1 + rng.usize(..self.answers_max);
            let (answered, answers) = channel();
            thread::scope(|scope| {
                let addr = server.addr;
                for (client, known) in known.iter_mut().enumerate() {
                    let (answered, mut rng) = (answered.clone(), rng.fork());
                    // An error means that the server was killed first.
                    scope.spawn(move || _ = change(addr, (client, self.is_torn), known, &mut rng, &answered));
                }
                drop(answered);
                assert_eq!(answers.iter().take(answer_count).count(), answer_count, "clients gave up");
                server.kill();
            });
        }
        check(Process::serve(&store).addr, &mut known)?;
        Ok(known.iter().map(|known| known.answer_count).sum())
    }
}

fn job(number: usize) -> Vec<u8> {
    format!("job {number}").into_bytes()
}

fn offer_jobs(addr: SocketAddr) {
    let mut connection = Client::connect(addr).expect("the server listens");
    for number in 0..JOB_COUNT {
        connection.call(&[b"RPUSH", b"waiting", &job(number)]).expect("the server answers");
    }
}

/// Executes commands until the server is killed.
fn change(
    addr: SocketAddr,
    (client, is_torn): (usize, bool),
    known: &mut Known,
    rng: &mut Rng,
    answered: &Sender<()>,
) -> io::Result<()> {
    let mut connection = Client::connect(addr)?;
    loop {
        if rng.u8(..6) == 0 {
            move_job(&mut connection, is_torn, rng)?;
        } else {
            let step = step(client, &known.values, rng);
            let request: Vec<&[u8]> = step.request.iter().map(Vec::as_slice).collect();
            (known.next, known.counting) = (Some(step.after), step.counted);
            connection.call(&request)?;
            known.values = known.next.take().expect("it was set");
            known.counted += std::mem::take(&mut known.counting);
        }
        known.answer_count += 1;
        // An error means that the receiver has counted enough replies, and the kill follows.
        let _ = answered.send(());
    }
}

fn move_job(connection: &mut Client, is_torn: bool, rng: &mut Rng) -> io::Result<()> {
    let (from, to): (&[u8], &[u8]) = if rng.bool() { (b"waiting", b"running") } else { (b"running", b"waiting") };
    if !is_torn {
        return connection.call(&[b"LMOVE", from, to, b"LEFT", b"RIGHT"]).map(drop);
    }
    if let Answer::Value(Some(job)) = connection.call(&[b"LPOP", from])? {
        connection.call(&[b"RPUSH", to, &job])?;
    }
    Ok(())
}

/// Draws a command on the keys of a client.
fn step(client: usize, values: &Values, rng: &mut Rng) -> Step {
    let (key, other) = (own_key(client, rng.u8(..4)), own_key(client, rng.u8(..4)));
    let name = format!("name {}", rng.u32(..NAME_COUNT)).into_bytes();
    let text = "x".repeat(rng.usize(..200)).into_bytes();
    let (mut after, mut counted) = (values.clone(), 0);
    let request: Vec<&[u8]> = match (after.get_mut(&key), rng.u8(..12)) {
        (_, 0) => {
            after.remove(&key);
            vec![b"DEL", &key]
        }
        (Some(_), 1) if key != other => {
            let value = after.remove(&key).expect("it is there");
            after.insert(other.clone(), value);
            vec![b"RENAME", &key, &other]
        }
        (Some(value), 2) if key != other => {
            let value = value.clone();
            after.insert(other.clone(), value);
            vec![b"COPY", &key, &other, b"REPLACE"]
        }
        (Some(_), 3) => vec![b"EXPIRE", &key, b"10000"],
        (_, 4) => {
            counted = 1 + rng.u64(..9);
            return Step {
                request: vec![b"HINCRBY".into(), b"shared".into(), b"count".into(), counted.to_string().into()],
                after,
                counted,
            };
        }
        (Some(Value::Hash(fields)), 5) => {
            fields.remove(&name);
            vec![b"HDEL", &key, &name]
        }
        (Some(Value::Hash(fields)), _) => {
            fields.insert(name.clone(), text.clone());
            vec![b"HSET", &key, &name, &text]
        }
        (Some(Value::Set(members)), 5..8) => {
            members.remove(&name);
            vec![b"SREM", &key, &name]
        }
        (Some(Value::Set(members)), 8) if matches!(values.get(&other), Some(Value::Set(_))) && key != other => {
            let is_there = members.remove(&name);
            if let Some(Value::Set(members)) = after.get_mut(&other).filter(|_| is_there) {
                members.insert(name.clone());
            }
            vec![b"SMOVE", &key, &other, &name]
        }
        (Some(Value::Set(members)), _) => {
            members.insert(name.clone());
            vec![b"SADD", &key, &name]
        }
        (Some(Value::List(elements)), 5 | 6) => {
            elements.pop_front();
            vec![b"LPOP", &key]
        }
        (Some(Value::List(elements)), 7) => {
            elements.rotate_right(1);
            vec![b"LMOVE", &key, &key, b"RIGHT", b"LEFT"]
        }
        (Some(Value::List(elements)), 8) => {
            elements.push_front(name.clone());
            vec![b"LPUSH", &key, &name]
        }
        (Some(Value::List(elements)), _) if elements.len() >= LIST_COUNT_MAX => {
            elements.truncate(5);
            vec![b"LTRIM", &key, b"0", b"4"]
        }
        (Some(Value::List(elements)), _) => {
            elements.push_back(text.clone());
            vec![b"RPUSH", &key, &text]
        }
        (Some(Value::SortedSet(members)), 5) => {
            members.remove(&name);
            vec![b"ZREM", &key, &name]
        }
        (Some(Value::SortedSet(members)), 6) => {
            *members.entry(name.clone()).or_default() += 3;
            vec![b"ZINCRBY", &key, b"3", &name]
        }
        (Some(Value::SortedSet(members)), _) => {
            members.insert(name.clone(), 7);
            vec![b"ZADD", &key, b"7", &name]
        }
        (None, draw) => match draw % 4 {
            0 => {
                after.insert(key.clone(), Value::Hash([(name.clone(), text.clone())].into()));
                vec![b"HSET", &key, &name, &text]
            }
            1 => {
                after.insert(key.clone(), Value::Set([name.clone()].into()));
                vec![b"SADD", &key, &name]
            }
            2 => {
                after.insert(key.clone(), Value::List([text.clone()].into()));
                vec![b"RPUSH", &key, &text]
            }
            _ => {
                after.insert(key.clone(), Value::SortedSet([(name.clone(), 5)].into()));
                vec![b"ZADD", &key, b"5", &name]
            }
        },
    };
    let request = request.into_iter().map(<[u8]>::to_vec).collect();
    after.retain(|_, value| !value.is_empty());
    Step { request, after, counted }
}

fn own_key(client: usize, number: u8) -> Vec<u8> {
    format!("{client}:{number}").into_bytes()
}

/// Checks everything that is stored, and lets each client know what there is of its keys.
fn check(addr: SocketAddr, known: &mut [Known]) -> Result<(), String> {
    let mut connection = Client::connect(addr).expect("the server listens");
    for (client, known) in known.iter_mut().enumerate() {
        let mut found = Values::new();
        for key in (0..4).map(|number| own_key(client, number)) {
            found.extend(read(&mut connection, &key)?.map(|value| (key, value)));
        }
        let is_next = known.next.as_ref() == Some(&found);
        if found != known.values && !is_next {
            return Err(format!("client {client} has {found:?}, not {:?} or {:?}", known.values, known.next));
        }
        (known.values, known.next) = (found, None);
    }
    check_sum(&mut connection, known)?;
    let mut jobs = Vec::new();
    for key in [&b"waiting"[..], b"running"] {
        if let Some(Value::List(elements)) = read(&mut connection, key)? {
            jobs.extend(elements);
        }
    }
    jobs.sort();
    let mut wanted: Vec<_> = (0..JOB_COUNT).map(job).collect();
    wanted.sort();
    if jobs == wanted { Ok(()) } else { Err(format!("a job is moved by half: {jobs:?}")) }
}

/// A command without a reply may have counted or not.
fn check_sum(connection: &mut Client, known: &mut [Known]) -> Result<(), String> {
    let mut found = match read(connection, b"shared")? {
        Some(Value::Hash(fields)) => {
            str::from_utf8(&fields[&b"count"[..]]).ok().and_then(|sum| sum.parse::<u64>().ok()).expect("a number")
        }
        _ => 0,
    };
    let acknowledged: u64 = known.iter().map(|known| known.counted).sum();
    let open: Vec<u64> = known.iter_mut().map(|known| std::mem::take(&mut known.counting)).collect();
    let sums = (0..1u32 << open.len()).map(|chosen| {
        let counted = open.iter().enumerate().filter(|(client, _)| chosen >> client & 1 == 1);
        acknowledged + counted.map(|(_, counted)| counted).sum::<u64>()
    });
    if !sums.into_iter().any(|sum| sum == found) {
        return Err(format!("the count is {found}; {acknowledged} is acknowledged, {open:?} is not"));
    }
    // From now on the count is known, whichever client has counted.
    known.iter_mut().for_each(|known| known.counted = std::mem::take(&mut found));
    Ok(())
}

/// Reads a value in several ways, which must agree.
fn read(connection: &mut Client, key: &[u8]) -> Result<Option<Value>, String> {
    let mut ask = |request: &[&[u8]]| connection.call(request).expect("the server answers");
    let Answer::Line(kind) = ask(&[b"TYPE", key]) else { panic!("no type") };
    let (value, count): (Value, &[u8]) = match &kind[..] {
        "none" => return Ok(None),
        "hash" => (Value::Hash(pairs(ask(&[b"HGETALL", key])).into_iter().collect()), b"HLEN"),
        "set" => (Value::Set(texts(ask(&[b"SMEMBERS", key])).into_iter().collect()), b"SCARD"),
        "list" => (Value::List(texts(ask(&[b"LRANGE", key, b"0", b"-1"])).into()), b"LLEN"),
        "zset" => {
            let by_score = scored(ask(&[b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"]));
            let Answer::All(scanned) = ask(&[b"ZSCAN", key, b"0", b"COUNT", b"1000"]) else { panic!("no cursor") };
            if scored(scanned[1].clone()) != by_score {
                return Err(format!("{}: orders differ: {by_score:?}, {scanned:?}", key.escape_ascii()));
            }
            (Value::SortedSet(by_score), b"ZCARD")
        }
        other => panic!("no client makes a {other}"),
    };
    let elements = match &value {
        Value::Hash(fields) => fields.len(),
        Value::Set(members) => members.len(),
        Value::List(elements) => elements.len(),
        Value::SortedSet(members) => members.len(),
    };
    match ask(&[count, key]) {
        Answer::Number(counted) if counted == elements as i64 && elements > 0 => Ok(Some(value)),
        other => Err(format!("{} has {elements} elements, and counts {other:?}", key.escape_ascii())),
    }
}

fn texts(answer: Answer) -> Vec<Vec<u8>> {
    let Answer::All(values) = answer else { panic!("no array: {answer:?}") };
    let text = |answer| match answer {
        Answer::Value(Some(text)) => text,
        other => panic!("no text: {other:?}"),
    };
    values.into_iter().map(text).collect()
}

fn pairs(answer: Answer) -> Vec<(Vec<u8>, Vec<u8>)> {
    texts(answer).chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
}

fn scored(answer: Answer) -> BTreeMap<Vec<u8>, i64> {
    let score = |text: &[u8]| str::from_utf8(text).ok().and_then(|text| text.parse().ok()).expect("a score");
    pairs(answer).into_iter().map(|(member, text)| (member, score(&text))).collect()
}
