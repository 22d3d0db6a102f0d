//! `cargo xtask core-only`: shows that the crates which promise to need `core` alone keep that promise.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for the terminal")]

mod core_only;
mod rustc;

use std::env;
use std::process::ExitCode;

/// Why a check did not pass, as a sentence.
type Failure = String;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let done = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["core-only"] => core_only::check(),
        _ => Err("usage: cargo xtask core-only".to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::FAILURE
        }
    }
}
