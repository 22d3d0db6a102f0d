//! What `cargo xtask kernel` runs in its guest: judges what the life before left on `/dev/hikv-ink`, and writes until the power is cut.
//!
//! usage: ink_cut SEED ACKNOWLEDGED…
//!
//! Each of as many threads as there are numbers makes changes that follow from the seed, the thread and a number, one after the
//! other, and says `a THREAD COUNT` when so many are acknowledged. Given those counts again it knows what must be there: all
//! of them, and at most the next one.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::collections::BTreeMap;
use std::error::Error;
use std::{env, io, process, thread};

use fastrand::Rng;
use ink_client::Ink;

/// So many that the tree splits, so few that each is replaced and deleted again and again.
const KEY_COUNT: u16 = 400;

type Contents = BTreeMap<Vec<u8>, Vec<u8>>;
/// A key, and its value; none to delete it.
type Change = (Vec<u8>, Option<Vec<u8>>);

/// The change of this number.
fn change(seed: u64, thread: u8, number: u64) -> Change {
    let mut random = Rng::with_seed(seed ^ u64::from(thread) << 56 ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let key = [&[thread], &random.u16(..KEY_COUNT).to_be_bytes()[..]].concat();
    let value = (random.u8(..4) > 0).then(|| {
        let len_bytes = if random.u8(..20) == 0 { random.usize(..9_000) } else { random.usize(..300) };
        number.to_le_bytes().iter().copied().cycle().take(8 + len_bytes).collect()
    });
    (key, value)
}

fn make(store: &Ink, (key, value): Change) -> io::Result<()> {
    match value {
        Some(value) => store.put(&key, &value),
        None => store.delete(&key).map(drop),
    }
}

/// How many changes of `thread` are there.
fn judged(seed: u64, thread: u8, acknowledged: u64, found: &Contents) -> Option<u64> {
    let (mut contents, mut fitting) = (Contents::new(), None);
    for count in 0..=acknowledged + 1 {
        if count >= acknowledged && contents == *found {
            fitting = Some(count);
        }
        match change(seed, thread, count) {
            (key, Some(value)) => _ = contents.insert(key, value),
            (key, None) => _ = contents.remove(&key),
        }
    }
    fitting
}

/// Says so, and waits until it has left the machine: what is said behind that is not acknowledged yet.
fn acknowledge(thread: u8, count: u64) {
    println!("a {thread} {count}");
    // SAFETY: a call without memory.
    unsafe { libc::tcdrain(libc::STDOUT_FILENO) };
}

fn run(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let [seed, acknowledged @ ..] = arguments else { return Err("too few arguments".into()) };
    let (seed, mut counts, store) = (seed.parse()?, Vec::new(), Ink::open()?);
    let (_, damage_count) = store.check()?;
    if damage_count > 0 {
        return Err(format!("{damage_count} contradictions: see the kernel's log").into());
    }
    let mut all = vec![Contents::new(); acknowledged.len()];
    for item in store.scan(b"") {
        let (key, value) = item?;
        // Others may have keys, too.
        if let Some(of_thread) = key.first().and_then(|&thread| all.get_mut(usize::from(thread))) {
            of_thread.insert(key, value);
        }
    }
    for ((thread, acknowledged), found) in (0u8..).zip(acknowledged).zip(&all) {
        let acknowledged = acknowledged.parse()?;
        let count = judged(seed, thread, acknowledged, found);
        counts.push(count.ok_or(format!("thread {thread}: what is there is not what {acknowledged} changes leave"))?);
    }
    println!("said undone {}", store.stat()?.undone);
    println!("judged {}", counts.iter().map(u64::to_string).collect::<Vec<_>>().join(" "));
    thread::scope(|scope| {
        for (thread, count) in (0u8..).zip(counts) {
            let store = &store;
            scope.spawn(move || {
                for number in count.. {
                    make(store, change(seed, thread, number)).unwrap_or_else(|error| {
                        println!("lost {error}");
                        process::exit(1)
                    });
                    acknowledge(thread, number + 1);
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
