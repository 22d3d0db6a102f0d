//! Random transactions of several threads, whose histories must be strictly serializable. Some histories go on over
//! processes that are killed in the middle of transactions.
//!
//! A process that is to be killed is this test, started again. It writes a line before and after each transaction to a
//! pipe, whose order is the clock of the history. The ignored tests run the same for a minute on each engine and
//! storage: `cargo test -p hikv --release --test hikv histories -- --ignored`.

use std::env;
use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hikv::{EngineKind, Error, Options, Store, Transact, Transaction, Tree, WriteBatch};
use testkit::{Clock, Extent, TX_KEY_COUNT, TX_OP_COUNT_MAX, TxEvent, TxOp, judge_transactions};

use super::{has_order, ok, stores};

const THREAD_COUNT: u64 = 4;
/// In a restarted test, the store's path.
const STORE: &str = "HIKV_TEST_HISTORY";
/// In a restarted test, the number of its life: the values of no two lives are the same.
const LIFE: &str = "HIKV_TEST_LIFE";
/// The values of a thread in one life have numbers below this.
const VALUE_COUNT_MAX: u64 = 1 << 32;

/// How bodies read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reads {
    Tracked,
    /// The broken variant.
    Untracked,
}

type Answers = Vec<Vec<(u8, u64)>>;

/// The source of a thread's transactions.
struct Source {
    rng: fastrand::Rng,
    number: u64,
    has_ranges: bool,
}

impl Source {
    fn new(seed: u64, has_ranges: bool) -> Source {
        Source { rng: fastrand::Rng::with_seed(seed), number: seed * VALUE_COUNT_MAX, has_ranges }
    }

    fn next(&mut self) -> Vec<TxOp> {
        let count = self.rng.usize(1..=TX_OP_COUNT_MAX);
        (0..count).map(|_| TxOp::random(&mut self.rng, self.has_ranges, &mut self.number)).collect()
    }
}

/// Returns the tree of a key: keys of one history are in two trees.
fn is_in_tree(key: u8) -> bool {
    usize::from(key) >= TX_KEY_COUNT / 2
}

fn value_of(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("a value has 8 bytes"))
}

/// Carries out the operations, alone or as a transaction, and returns what they have read.
fn carry_out(
    store: &Store,
    tree: &Tree,
    ops: &[TxOp],
    reads: Reads,
    rng: &mut fastrand::Rng,
) -> Result<Answers, Error> {
    match ops {
        // Single operations and batches take part without a transaction.
        [TxOp::Put(key, value)] => own(store, tree, *key).put([*key], value.to_le_bytes()).map(|()| Vec::new()),
        [TxOp::Delete(key)] => own(store, tree, *key).delete([*key]).map(|_| Vec::new()),
        [TxOp::Get(key)] => {
            let found = own(store, tree, *key).get([*key])?;
            Ok(vec![found.iter().map(|value| (*key, value_of(value))).collect()])
        }
        ops if !ops.iter().any(|op| op.reads()) && rng.bool() => {
            let mut batch = WriteBatch::new();
            for op in ops {
                match *op {
                    TxOp::Put(key, value) => _ = batch.tree(own(store, tree, key)).put([key], value.to_le_bytes()),
                    TxOp::Delete(key) => _ = batch.tree(own(store, tree, key)).delete([key]),
                    TxOp::Get(_) | TxOp::Range(..) => {}
                }
            }
            store.write(&batch).map(|()| Vec::new())
        }
        ops => {
            let how = if rng.u8(..10) == 0 { Transact::new().exclusive_first() } else { Transact::new() };
            store.transact_with(how, |tx| transact(store, tree, ops, reads, tx))
        }
    }
}

fn own<'t>(store: &'t Store, tree: &'t Tree, key: u8) -> &'t Tree {
    if is_in_tree(key) { tree } else { store }
}

fn transact(store: &Store, tree: &Tree, ops: &[TxOp], reads: Reads, tx: &Transaction<'_>) -> Result<Answers, Error> {
    let in_tree = tx.tree(tree)?;
    let mut answers = Vec::new();
    for op in ops {
        match *op {
            TxOp::Put(key, value) if is_in_tree(key) => in_tree.put([key], value.to_le_bytes())?,
            TxOp::Put(key, value) => tx.put([key], value.to_le_bytes())?,
            TxOp::Delete(key) if is_in_tree(key) => in_tree.delete([key])?,
            TxOp::Delete(key) => tx.delete([key])?,
            TxOp::Get(key) => {
                let found = match (is_in_tree(key), reads) {
                    (true, Reads::Tracked) => in_tree.get([key])?,
                    (true, Reads::Untracked) => in_tree.get_untracked([key])?,
                    (false, Reads::Tracked) => tx.get([key])?,
                    (false, Reads::Untracked) => tx.get_untracked([key])?,
                };
                answers.push(found.iter().map(|value| (key, value_of(value))).collect());
            }
            TxOp::Range(first, last) => {
                let mut rows = Vec::new();
                for (part, tree) in [(&**tx, &**store), (&in_tree, tree)] {
                    let range = [first]..=[last];
                    let items: Vec<_> = match reads {
                        Reads::Tracked => part.range(range)?.collect::<Result<_, _>>()?,
                        Reads::Untracked => tree.range(range)?.collect::<Result<_, _>>()?,
                    };
                    rows.extend(items.iter().map(|(key, value)| (key[0], value_of(value))));
                }
                answers.push(rows);
            }
        }
    }
    ok(answers)
}

/// Runs threads on a store until `is_over`, and returns their history.
fn history_of(store: &Store, reads: Reads, seed: u64, is_over: impl Fn(u64) -> bool + Sync) -> Vec<TxEvent> {
    let (clock, start, tree) = (Clock::default(), Barrier::new(THREAD_COUNT as usize), store.tree("tree").unwrap());
    let has_ranges = has_order(store);
    thread::scope(|scope| {
        let threads: Vec<_> = (1..=THREAD_COUNT)
            .map(|thread| {
                let (clock, start, tree, is_over) = (&clock, &start, &tree, &is_over);
                scope.spawn(move || {
                    let mut source = Source::new(seed * THREAD_COUNT + thread, has_ranges);
                    let mut rng = source.rng.fork();
                    start.wait();
                    let mut events = Vec::new();
                    while !is_over(events.len() as u64) {
                        let ops = source.next();
                        let begin = clock.now();
                        let answers = carry_out(store, tree, &ops, reads, &mut rng).unwrap();
                        events.push(TxEvent { ops, answers: Some(answers), begin, end: clock.now() });
                    }
                    events
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    })
}

fn empty(store: &Store) {
    store.clear().unwrap();
    store.tree("tree").unwrap().clear().unwrap();
}

/// Judges histories on each engine and storage. Untracked reads must be noticed on one of them.
fn judge(is_over: impl Fn(Instant, u64) -> bool + Sync, round_count: u64) {
    let mut is_caught = false;
    for (dir, store) in stores() {
        for seed in 0..round_count {
            empty(&store);
            let start = Instant::now();
            let events = history_of(&store, Reads::Tracked, seed, |count| is_over(start, count));
            assert!(events.len() as u64 >= THREAD_COUNT);
            judge_transactions(&events).unwrap_or_else(|wrong| panic!("{}: {wrong}", dir.path().display()));
        }
        empty(&store);
        let untracked = history_of(&store, Reads::Untracked, 0, |count| count == 5_000);
        is_caught |= judge_transactions(&untracked).is_err();
    }
    assert!(is_caught, "untracked reads are not noticed");
}

#[test]
fn transactions_are_strictly_serializable() {
    let count = Extent::pick(500, 4_000);
    judge(|_, done| done == count, 1);
}

#[test]
#[ignore = "minutes"]
fn transactions_are_strictly_serializable_for_long() {
    judge(|start, _| start.elapsed() > Duration::from_secs(6), 10);
}

/// In a process started as the writer, transacts until it is killed.
fn transact_if_started_for_it() -> bool {
    let Ok(path) = env::var(STORE) else { return false };
    let life: u64 = env::var(LIFE).unwrap().parse().unwrap();
    let store = Store::open(path).unwrap();
    let (tree, has_ranges) = (store.tree("tree").unwrap(), has_order(&store));
    thread::scope(|scope| {
        for thread in 1..=THREAD_COUNT {
            let (store, tree) = (&store, &tree);
            scope.spawn(move || {
                let mut source = Source::new(life * (THREAD_COUNT + 1) + thread, has_ranges);
                let mut rng = source.rng.fork();
                loop {
                    let ops = source.next();
                    say(&format!("{thread} {}\n", ops.iter().fold(String::new(), |text, op| text + &text_of(*op))));
                    let answers = carry_out(store, tree, &ops, Reads::Tracked, &mut rng).unwrap();
                    let mut line = format!("{thread} =");
                    for answer in answers {
                        line += ";";
                        answer.iter().for_each(|(key, value)| write!(line, "{key}:{value},").unwrap());
                    }
                    say(&(line + "\n"));
                }
            });
        }
    });
    true
}

/// Writes a line to the pipe in one step: it is shorter than what a pipe takes at once.
fn say(line: &str) {
    assert!(line.len() <= 4096);
    io::stderr().write_all(line.as_bytes()).unwrap();
}

fn text_of(op: TxOp) -> String {
    match op {
        TxOp::Get(key) => format!("g{key},0;"),
        TxOp::Put(key, value) => format!("p{key},{value};"),
        TxOp::Delete(key) => format!("d{key},0;"),
        TxOp::Range(first, last) => format!("r{first},{last};"),
    }
}

fn op_of(text: &str) -> TxOp {
    let (key, second) = text[1..].split_once(',').unwrap();
    let (key, second): (u8, u64) = (key.parse().unwrap(), second.parse().unwrap());
    match &text[..1] {
        "g" => TxOp::Get(key),
        "p" => TxOp::Put(key, second),
        "d" => TxOp::Delete(key),
        _ => TxOp::Range(key, second as u8),
    }
}

fn answers_of(text: &str) -> Answers {
    let pair = |pair: &str| {
        let (key, value) = pair.split_once(':').unwrap();
        (key.parse().unwrap(), value.parse().unwrap())
    };
    let answer = |answer: &str| answer.split_terminator(',').map(pair).collect();
    text.split(';').skip(1).map(answer).collect()
}

/// Adds the history of a killed process, by the lines of its pipe. The last line may be incomplete.
fn add_lines(events: &mut Vec<TxEvent>, time: &mut u64, lines: &[String]) {
    let mut open: Vec<Option<(Vec<TxOp>, u64)>> = vec![None; THREAD_COUNT as usize + 1];
    for line in lines {
        *time += 1;
        let (thread, text) = line.split_once(' ').unwrap_or_else(|| panic!("the process complains: {line}"));
        let thread: usize = thread.parse().unwrap_or_else(|_| panic!("the process complains: {line}"));
        match text.strip_prefix('=') {
            None => open[thread] = Some((text.split_terminator(';').map(op_of).collect(), *time)),
            Some(answers) => {
                let (ops, begin) = open[thread].take().expect("it has begun");
                events.push(TxEvent { ops, answers: Some(answers_of(answers)), begin, end: *time });
            }
        }
    }
    for (ops, begin) in open.into_iter().flatten() {
        *time += 1;
        events.push(TxEvent { ops, answers: None, begin, end: *time });
    }
}

/// Lets a process transact for `time`, kills it, and returns its lines.
fn run_and_kill(test: &str, path: &Path, life: u64, time: Duration) -> Vec<String> {
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .args([&format!("transactions::histories::{test}"), "--exact", "--nocapture", "--include-ignored"])
        .env(STORE, path)
        .env(LIFE, life.to_string());
    let mut process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut pipe = BufReader::new(process.stderr.take().expect("it is a pipe"));
    let is_killed = AtomicBool::new(false);
    let (mut lines, start) = (Vec::new(), Instant::now());
    loop {
        let mut line = String::new();
        pipe.read_line(&mut line).unwrap();
        let Some(line) = line.strip_suffix('\n') else { break };
        lines.push(line.to_owned());
        if start.elapsed() >= time && lines.len() > 8 && !is_killed.swap(true, Ordering::Relaxed) {
            process.kill().unwrap();
        }
    }
    assert_eq!(process.wait().unwrap().signal(), Some(libc::SIGKILL), "it ended by itself: {:?}", lines.last());
    lines
}

/// Kills the process of one store again and again. All lives are one history.
fn survive(test: &str, life_count: u64, time: Duration) {
    if transact_if_started_for_it() {
        return;
    }
    for engine in EngineKind::ALL.iter().filter(|kind| kind.name() != "toy") {
        for home in [tempfile::tempdir_in("/dev/shm"), tempfile::tempdir_in(".")] {
            let home = home.unwrap();
            let path = home.path().join("store");
            drop(Options::new().engine(*engine).open(&path).unwrap());
            let (mut events, mut now) = (Vec::new(), 0);
            for life in 1..=life_count {
                add_lines(&mut events, &mut now, &run_and_kill(test, &path, life, time));
            }
            assert!(events.iter().any(|event| event.answers.is_none()), "no transaction was interrupted");
            judge_transactions(&events).unwrap_or_else(|wrong| panic!("{engine} {}: {wrong}", path.display()));
            let store = Store::open(&path).unwrap();
            assert_eq!(store.verify(|_| {}).unwrap().damage, []);
        }
    }
}

#[test]
fn transactions_survive_kill() {
    survive("transactions_survive_kill", Extent::pick(3, 10), Duration::from_millis(50));
}

#[test]
#[ignore = "minutes"]
fn transactions_survive_a_kill_every_second() {
    survive("transactions_survive_a_kill_every_second", 60, Duration::from_secs(1));
}
