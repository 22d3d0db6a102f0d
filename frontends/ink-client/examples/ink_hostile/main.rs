//! Hostile processes against `/dev/hikv-ink`. `cargo xtask kernel hostile` runs this in its guest, as root.
//!
//! usage: ink_hostile SECONDS SEED
//!
//! Runs waves of 64 unprivileged processes until the time is over. They send requests that must be refused
//! (`cases.rs`) and requests that must be accepted (`orderly.rs`), search for bytes of other processes (`leaks.rs`),
//! and remove memory and descriptors while requests run (`races.rs`); some are killed in the middle. After each wave
//! the store must be consistent, the keys that only this process writes must have the written values, and the
//! kernel's log must show no fault.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

mod cases;
mod leaks;
mod memory;
mod orderly;
mod races;
mod witness;

use std::error::Error;
use std::time::{Duration, Instant};
use std::{env, process};

use fastrand::Rng;
use witness::Witness;

const PROCESS_COUNT: u64 = 64;
/// Cases of each process in a wave.
const CASE_COUNT: u32 = 40;
/// Progress is printed each time this many processes of a wave have ended.
const ENDED_BETWEEN: u64 = 8;
/// The unprivileged user that Linux names `nobody`.
const USER: u32 = 65_534;

/// Runs the cases of one process.
fn attack(seed: u64) -> Result<(), String> {
    let mut random = Rng::with_seed(seed);
    let descriptors = cases::Descriptors::open().map_err(|error| error.to_string())?;
    // SAFETY: a call without memory.
    if unsafe { libc::setuid(USER) } != 0 {
        return Err("the process could not drop its privileges".to_owned());
    }
    for _ in 0..CASE_COUNT {
        match random.u8(..16) {
            0 => races::unmapped_meanwhile(&descriptors, &mut random)?,
            1 => races::closed_meanwhile(&descriptors, &mut random)?,
            2 => cases::any_bytes(&descriptors, &mut random)?,
            3 => cases::submissions(&descriptors, &mut random)?,
            4 => cases::numbers(&descriptors, &mut random)?,
            5 => leaks::nothing_behind(&descriptors.both, &mut random)?,
            6..9 => cases::refused(&descriptors, &mut random)?,
            _ => orderly::well_formed(&descriptors, &mut random)?,
        }
    }
    Ok(())
}

/// Starts a process and returns its id.
fn start(seed: u64) -> Result<i32, String> {
    // SAFETY: this process has one thread.
    match unsafe { libc::fork() } {
        0 => {
            if let Err(why) = attack(seed) {
                println!("lost process {}, seed {seed}: {why}", process::id());
                process::exit(1);
            }
            process::exit(0)
        }
        -1 => Err("fork failed".to_owned()),
        pid => Ok(pid),
    }
}

/// Waits for a process; one in eight is killed first.
fn end(pid: i32, random: &mut Rng) -> Result<(), String> {
    if random.u8(..8) == 0 {
        // SAFETY: a process that this one has started and not yet waited for.
        unsafe { libc::kill(pid, libc::SIGKILL) };
    }
    let mut status = 0;
    // SAFETY: the status belongs to this function.
    if unsafe { libc::waitpid(pid, &raw mut status, 0) } != pid {
        return Err("a process cannot be waited for".to_owned());
    }
    let is_fine = libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGKILL || status == 0;
    if is_fine { Ok(()) } else { Err(format!("a process ended with {status:#x}")) }
}

fn run(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let [seconds, seed] = arguments else { return Err("usage: ink_hostile SECONDS SEED".into()) };
    let (allowed, seed) = (Duration::from_secs(seconds.parse()?), seed.parse()?);
    let (start_time, mut random) = (Instant::now(), Rng::with_seed(seed));
    let mut witness = Witness::new()?;
    for wave in 1u64.. {
        let processes: Vec<i32> = (0..PROCESS_COUNT).map(|_| start(random.u64(..))).collect::<Result<_, _>>()?;
        witness.write(&mut random)?;
        for (ended, pid) in (1..).zip(processes) {
            end(pid, &mut random)?;
            if ended % ENDED_BETWEEN == 0 {
                println!("wave {wave}: {ended} processes have ended, after {} s", start_time.elapsed().as_secs());
            }
        }
        witness.check(&mut random)?;
        let Witness { key_count, merged_count, .. } = witness;
        println!("wave {wave}: {PROCESS_COUNT} processes, {key_count} keys, {merged_count} nodes merged");
        if start_time.elapsed() > allowed {
            println!("done {wave} waves, {} cases", wave * PROCESS_COUNT * u64::from(CASE_COUNT));
            return if merged_count == 0 { Err("no node was merged".into()) } else { Ok(()) };
        }
    }
    Ok(())
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let Err(error) = run(&arguments) {
        println!("lost {error}");
        process::exit(1);
    }
}
