//! Calls `/dev/hikv-ink` from a terminal.
//!
//! usage: ink put KEY VALUE | get KEY | delete KEY | scan [FROM] | check | stat
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for the terminal")]

use std::process::ExitCode;
use std::{env, io};

use ink_client::Ink;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns false if there was no such key.
fn run(words: &[&str]) -> io::Result<bool> {
    match *words {
        ["put", key, value] => Ink::open()?.put(key.as_bytes(), value.as_bytes()).map(|()| true),
        ["get", key] => {
            let found = Ink::open_for_reading()?.get(key.as_bytes())?;
            found.iter().for_each(|value| println!("{}", text(value)));
            Ok(found.is_some())
        }
        ["delete", key] => Ink::open()?.delete(key.as_bytes()),
        ["scan"] | ["scan", _] => {
            for item in Ink::open_for_reading()?.scan(words.get(1).unwrap_or(&"").as_bytes()) {
                let (key, value) = item?;
                println!("{}\t{}", text(&key), text(&value));
            }
            Ok(true)
        }
        ["check"] => {
            let (key_count, damage_count) = Ink::open_for_reading()?.check()?;
            println!("{key_count} keys, {damage_count} contradictions");
            Ok(damage_count == 0)
        }
        ["stat"] => Ink::open_for_reading()?.stat().map(|stat| println!("{stat:#?}")).map(|()| true),
        _ => Err(io::Error::other("usage: ink put KEY VALUE | get KEY | delete KEY | scan [FROM] | check | stat")),
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match run(&arguments.iter().map(String::as_str).collect::<Vec<_>>()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("ink: {error}");
            ExitCode::from(2)
        }
    }
}
