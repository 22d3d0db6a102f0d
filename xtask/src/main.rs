//! Development tasks that no test of a crate can do: checks, long tests, measurements and generated files.
//!
//! - `core-only`: builds the crates that need only `core` without any other library.
//! - `device conformance`: checks an NVMe-KV device against its specification, item by item. `device guest`: an
//!   unmodified Linux guest attaches to one. `device rounds N`: kills one N times under load. `device fuzz MINUTES`:
//!   sends hostile input. `device speed`: measures.
//! - `explore [NAME]`: runs complete crash explorations, of which a test run takes a sample.
//! - `figures PAPER [FIG …]`: measures the figures of a paper (bench/figures).
//! - `house`: prints the dependencies among crates and files, and their cycles. `house check` checks the links in
//!   the pages, and the sizes of cycles, files, comments and types.
//! - `kernel`: builds InK as a kernel module and tests it.
//! - `mutants`: omits one step at a time and finds the test that detects it.
//! - `pictures`: checks the pictures and the README's table of speed; `pictures write` generates them.
//! - `prose`: checks pages, comments and printed texts against the rules for plain English.
//! - `steps`: compares the steps of protocols in docs/durability.md with the heads of the modules.
//! - `vm rounds N [SEED [MEDIUM]]`: cuts the power of a guest N times on each storage. `vm cached N [SEED]`: the same
//!   with a model of the processor's cache.
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
