//! Prints the tables of `docs/scale.md`, or writes them into the page.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for the terminal")]

use std::process::ExitCode;

use scale::page;
use scale::tables;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {
            for table in tables::all() {
                println!("{}\n\n{}", table.name, table.text);
            }
            ExitCode::SUCCESS
        }
        ["write", path] => match page::write(path) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("scale: {path}: {error}");
                ExitCode::FAILURE
            }
        },
        _ => {
            eprintln!("usage: scale [write PAGE]");
            ExitCode::from(2)
        }
    }
}
