//! Runs in the guest of `cargo xtask kernel`: checks the contents of `/dev/hikv-ink` after a power cut, and writes
//! until the next one.
//!
//! usage: ink_cut SEED ACKNOWLEDGED…
//!
//! There is one thread for each number. It makes changes that are determined by the seed, the thread and the change's
//! number, one after the other, and prints `a THREAD COUNT` once this many are acknowledged. The next run gets these
//! counts and checks the contents: every acknowledged change must be there, and at most the next one.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

mod script;

use std::error::Error;
use std::{env, io, process, thread};

use ink_client::Ink;
use script::{Change, Found, change};

/// Thread 0 prints the number of merged nodes at every change whose number is a multiple of this.
const MERGES_SAID_OF: u64 = 2;

fn make(store: &Ink, (key, value): Change) -> io::Result<()> {
    match value {
        Some(value) => store.put(&key, &value),
        None => store.delete(&key).map(drop),
    }
}

/// Prints the count and waits until it has left the machine: until then, the change does not count as acknowledged.
fn acknowledge(thread: u8, count: u64) {
    println!("a {thread} {count}");
    // SAFETY: a call without memory.
    unsafe { libc::tcdrain(libc::STDOUT_FILENO) };
}

fn run(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let ((seed, acknowledged), store) = (script::arguments(arguments)?, Ink::open()?);
    let (_, damage_count) = store.check()?;
    if damage_count > 0 {
        return Err(format!("{damage_count} contradictions: see the kernel's log").into());
    }
    let mut found = Found::new(acknowledged.len());
    for item in store.scan(b"") {
        let (key, value) = item?;
        found.insert(key, value);
    }
    let counts = found.judged(seed, &acknowledged)?;
    println!("said undone {}", store.stat()?.undone);
    script::say_judged(&counts);
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
                    if thread == 0 && number.is_multiple_of(MERGES_SAID_OF) {
                        println!("said merged {}", store.stat().map_or(0, |stat| stat.merged));
                    }
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
