//! Checks that no test of a crate can make.
//!
//! `cargo xtask core-only` shows that the crates which promise to need `core` alone keep that promise. `cargo xtask vm rounds N [SEED]`
//! cuts the power of a guest N times on each file system.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for the terminal")]

mod core_only;
mod rustc;
mod vm;

use std::env;
use std::process::ExitCode;

/// Why a check did not pass, as a sentence.
type Failure = String;

const USAGE: &str = "usage: cargo xtask core-only | cargo xtask vm rounds COUNT [SEED]";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let done = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["core-only"] => core_only::check(),
        ["vm", "rounds", count] => {
            count.parse().map_err(|_| USAGE.to_owned()).and_then(|count| vm::rounds(count, None))
        }
        ["vm", "rounds", count, seed] => match (count.parse(), seed.parse()) {
            (Ok(count), Ok(seed)) => vm::rounds(count, Some(seed)),
            _ => Err(USAGE.to_owned()),
        },
        _ => Err(USAGE.to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::FAILURE
        }
    }
}
