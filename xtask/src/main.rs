//! Checks that no test of a crate can make.
//!
//! `cargo xtask core-only` shows that the crates which promise to need `core` alone keep that promise. `cargo xtask device conformance` goes
//! through what a device has to do, line by line; `cargo xtask device guest` has a stock guest attach to one, `rounds N` kills one N times under
//! load, `fuzz MINUTES` sends hosts that mean harm, `speed` measures. `cargo xtask vm rounds N [SEED
//! [MEDIUM]]` cuts the power of a guest N times on each medium, `vm cached N [SEED]` with a model of the processor's cache. `cargo xtask mutants` leaves out steps, one after the other, and looks which
//! test notices. `cargo xtask explore [NAME]` runs whole the crash explorations of which every test run takes a slice. `cargo xtask
//! house` prints which crate and which file uses which, and the circles. `cargo xtask figures PAPER [FIG …]` measures the figures of a
//! paper (crates/figures). `cargo xtask kernel` builds InK as a module of the kernel, and tries it. `cargo xtask prose` checks
//! pages, comments and printed texts against the rules for plain English. `cargo xtask steps` compares the steps
//! that docs/durability.md shows with the heads of the modules that take them. `cargo xtask pictures` checks the pictures of the pages and the
//! README's table of speed, which `pictures write` makes.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for the terminal")]

mod core_only;
mod device;
mod explore;
mod failure;
mod figures;
mod house;
mod kernel;
mod mutants;
mod pictures;
mod prose;
mod rustc;
mod steps;
mod tree;
mod vm;

use std::env;
use std::path::Path;
use std::process::ExitCode;

use failure::Failure;

const USAGE: &str = "usage: cargo xtask core-only | device conformance|guest|rounds COUNT|fuzz MINUTES|speed | explore [NAME] | figures … | house [check] | kernel … | mutants [list | [quick] [FOLDER|FILE [COUNT]]] | pictures [write] | prose | steps [write] | vm rounds COUNT [SEED [MEDIUM]] | vm cached COUNT [SEED]";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let done = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["core-only"] => core_only::check(),
        ["device", "conformance"] => device::conformance(),
        ["device", "guest"] => device::guest(),
        ["device", "speed"] => device::speed(),
        ["device", "rounds", count] if let Ok(count) = count.parse() => device::rounds(count),
        ["device", "fuzz", minutes] if let Ok(minutes) = minutes.parse() => device::fuzz(minutes),
        ["explore", ref names @ ..] if names.len() < 2 => explore::whole(names),
        ["figures", ref words @ ..] => figures::measure(words),
        ["house"] => house::show(),
        ["house", "check"] => house::check(),
        ["kernel", ref words @ ..] => kernel::command(words),
        ["mutants", "list"] => mutants::list(Path::new(".")),
        ["mutants", "quick", ref which @ ..] => run_mutants(true, which),
        ["mutants", ref which @ ..] => run_mutants(false, which),
        ["pictures"] => pictures::check(),
        ["pictures", "write"] => pictures::write(),
        ["prose"] => prose::check(),
        ["steps"] => steps::check(),
        ["steps", "write"] => steps::write(),
        ["vm", ref words @ ..] => vm::command(words),
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

fn run_mutants(is_quick: bool, which: &[&str]) -> Result<(), Failure> {
    match which {
        [] => mutants::run(is_quick, None, usize::MAX),
        [package] => mutants::run(is_quick, Some(package), usize::MAX),
        [package, count] if let Ok(count) = count.parse() => mutants::run(is_quick, Some(package), count),
        _ => Err(USAGE.to_owned()),
    }
}
