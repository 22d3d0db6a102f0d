//! The program that `cargo xtask vm` runs in its guest: it checks the store that the previous run left, and writes
//! until the power is cut.
//!
//! usage: power_cut PLACE LEVEL PROMISE any|batches SEED ACKNOWLEDGED…
//!
//! One thread per ACKNOWLEDGED number makes changes one after the other. Each change is determined by the seed, the
//! thread and the change's number. The thread prints `a THREAD COUNT` when COUNT changes are acknowledged. With these
//! counts as arguments, the next run knows the expected contents: with the promise `power`, all acknowledged changes
//! and at most one more; with `buffered` or `process`, any prefix of that. With `batches`, each change is one batch of
//! short values, so most of its steps are those of a batch.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::collections::BTreeMap;
use std::error::Error;
use std::{env, process, thread};

use fastrand::Rng;
use hikv::{Durability, Options, Store, WriteBatch};

/// So few that each key is replaced and deleted repeatedly.
const KEY_COUNT: u8 = 48;
const BATCH_KEY_COUNT: usize = 6;
/// Small, so that checkpoints are frequent.
const LOG_BYTES_MAX: u64 = 8 << 20;

type Contents = BTreeMap<Vec<u8>, Vec<u8>>;
/// The keys of one change with their values; `None` deletes the key.
type Change = Vec<(Vec<u8>, Option<Vec<u8>>)>;

/// The parameters that determine all changes.
#[derive(Clone, Copy)]
struct Script {
    seed: u64,
    is_of_batches: bool,
}

/// Returns the change with this number. Some changes are batches.
fn change(script: Script, thread: u8, number: u64) -> Change {
    let seed = script.seed ^ u64::from(thread) << 56 ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut random = Rng::with_seed(seed);
    let is_batch = random.u8(..3) == 0 || script.is_of_batches;
    let count = if is_batch { random.usize(2..=BATCH_KEY_COUNT) } else { 1 };
    let first = random.u8(..KEY_COUNT);
    (0..count as u8).map(|i| one(script, thread, (first + i * 7) % KEY_COUNT, number, &mut random)).collect()
}

fn one(script: Script, thread: u8, key: u8, number: u64, random: &mut Rng) -> (Vec<u8>, Option<Vec<u8>>) {
    let value = (random.u8(..4) > 0).then(|| {
        let len_bytes = match random.u8(..20) {
            _ if script.is_of_batches => 0,
            0 => random.usize(..9_000),
            _ => random.usize(..300),
        };
        let stamp = number.to_le_bytes();
        stamp.iter().copied().cycle().take(8 + len_bytes).collect()
    });
    (vec![thread, key], value)
}

fn make(store: &Store, change: Change) -> Result<(), hikv::Error> {
    if let [(key, value)] = &change[..] {
        return match value {
            Some(value) => store.put(key, value),
            None => store.delete(key).map(drop),
        };
    }
    let mut batch = WriteBatch::new();
    for (key, value) in &change {
        match value {
            Some(value) => batch.put(key, value),
            None => batch.delete(key),
        };
    }
    store.write(&batch)
}

/// Returns the number of changes of `thread` that the contents include, or `None` if they break the promise.
fn judged(script: Script, thread: u8, acknowledged: u64, promise: Durability, found: &Contents) -> Option<u64> {
    let first = if promise == Durability::Power { acknowledged } else { 0 };
    let (mut contents, mut fitting) = (Contents::new(), None);
    for count in 0..=acknowledged + 1 {
        if count >= first && contents == *found {
            fitting = Some(count);
        }
        for (key, value) in change(script, thread, count) {
            match value {
                Some(value) => _ = contents.insert(key, value),
                None => _ = contents.remove(&key),
            }
        }
    }
    fitting
}

fn found(store: &Store, thread: u8) -> Result<Contents, hikv::Error> {
    let mut found = Contents::new();
    store.for_each(|key, value| {
        if key[0] == thread {
            found.insert(key.to_vec(), value.to_vec());
        }
    })?;
    Ok(found)
}

fn level(name: &str) -> Durability {
    match name {
        "power" => Durability::Power,
        "buffered" => Durability::Buffered,
        _ => Durability::Process,
    }
}

fn run(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let [place, opened, promise, changes, seed, acknowledged @ ..] = arguments else {
        return Err("too few arguments".into());
    };
    let (script, mut counts) = (Script { seed: seed.parse()?, is_of_batches: changes == "batches" }, Vec::new());
    let options = Options::new()
        .tuning(|tuning| tuning.partition_count(1).log_bytes_max(LOG_BYTES_MAX))
        .durability(level(opened));
    let store = options.open(place)?;
    let damage = store.verify(|_| {})?.damage;
    if !damage.is_empty() {
        return Err(format!("damage: {damage:?}").into());
    }
    for (thread, acknowledged) in (0u8..).zip(acknowledged) {
        let acknowledged = acknowledged.parse()?;
        let count = judged(script, thread, acknowledged, level(promise), &found(&store, thread)?);
        counts.push(count.ok_or(format!("thread {thread}: what is there is not what {acknowledged} changes leave"))?);
    }
    let stats = store.stats();
    println!("said {} {}", stats.medium, stats.durability);
    println!("judged {}", counts.iter().map(u64::to_string).collect::<Vec<_>>().join(" "));
    thread::scope(|scope| {
        for (thread, count) in (0u8..).zip(counts) {
            let store = &store;
            scope.spawn(move || {
                for number in count.. {
                    make(store, change(script, thread, number)).unwrap_or_else(|error| {
                        println!("lost {error}");
                        process::exit(1)
                    });
                    println!("a {thread} {}", number + 1);
                }
            });
        }
    });
    Ok(())
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let Err(error) = run(&arguments) {
        println!("lost {error}");
    }
}
