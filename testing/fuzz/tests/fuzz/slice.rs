//! A short run of every fuzz target: the corpus, and inputs derived from the corpus at random, the same in each run.

use std::fs;
use std::path::PathBuf;

use fuzz::{TARGETS, Target};

/// Random inputs for each target.
const INPUT_COUNT: usize = 2_000;

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let mut files: Vec<PathBuf> =
        fs::read_dir(dir).expect("every target has a corpus").map(|entry| entry.expect("it is read").path()).collect();
    files.sort();
    files.into_iter().map(|file| fs::read(file).expect("it is read")).collect()
}

/// Returns one of the inputs, with bytes changed, removed or doubled, or with the end of another input.
fn mutated(inputs: &[Vec<u8>], random: &mut fastrand::Rng) -> Vec<u8> {
    let mut input = inputs[random.usize(..inputs.len())].clone();
    for _ in 0..random.usize(1..4) {
        let at = random.usize(..=input.len());
        let end = random.usize(at..=input.len());
        match random.u8(..5) {
            0 => input.insert(at, random.u8(..)),
            1 if at < input.len() => input[at] ^= 1 << random.u8(..8),
            2 => drop(input.drain(at..end)),
            3 => input.extend_from_within(at..end),
            _ => {
                let other = &inputs[random.usize(..inputs.len())];
                input.truncate(at);
                input.extend_from_slice(&other[random.usize(..=other.len())..]);
            }
        }
    }
    input
}

fn run(name: &str) {
    let (_, target): (&str, Target) = TARGETS.into_iter().find(|(known, _)| *known == name).expect("a known target");
    let inputs = corpus(name);
    inputs.iter().for_each(|input| target(input));
    let mut random = fastrand::Rng::with_seed(7);
    (0..INPUT_COUNT).for_each(|_| target(&mutated(&inputs, &mut random)));
}

#[test]
fn acl_rules() {
    run("acl_rules");
}

#[test]
fn c_batches() {
    run("c_batches");
}

#[test]
fn commands_target() {
    run("commands");
}

#[test]
fn pdus_target() {
    run("pdus");
}

#[test]
fn rdb_files() {
    run("rdb_files");
}

#[test]
fn replies_target() {
    run("replies");
}

#[test]
fn requests_target() {
    run("requests");
}

#[test]
fn restore_target() {
    run("restore");
}

#[test]
fn script_calls() {
    run("script_calls");
}

#[test]
fn scripts_target() {
    run("scripts");
}
