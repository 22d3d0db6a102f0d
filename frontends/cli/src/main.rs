//! The `hikv` program: reads, writes, checks, measures and serves stores.

mod commands;
mod durable;
mod failure;
mod formats;
mod given;
mod in_tree;
mod input;
mod interrupt;
mod kept;
mod logging;
mod memory;
mod notify;
mod opening;
mod output;
mod plural;
mod progress;
mod read_cache;
mod serving;
mod skipped;
#[cfg(test)]
mod texts;
mod tls;
mod ttl_seconds;
mod verified;

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::LazyLock;

use clap::Parser;
use hikv::Format;

use commands::Command;
use failure::{EXIT_CODES, Failure};
use server::LogControl;

/// A key-value store for persistent memory, tmpfs and ordinary disks.
#[derive(Parser)]
#[command(name = "hikv", version, long_version = VERSION.as_str(), after_help = AFTER_HELP.as_str())]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

/// The last paragraphs of `--help`.
static AFTER_HELP: LazyLock<String> = LazyLock::new(|| {
    let codes: Vec<String> = EXIT_CODES.iter().map(|(code, meaning)| format!("  {code:<13}  {meaning}")).collect();
    format!(
        "Keys and values are arbitrary bytes. After --, a word that begins with - is a key or a value, not an option.\n\
         Exit codes:\n{}",
        codes.join("\n")
    )
});

/// The text of `--version`; `-V` prints only its first line.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let ((major, minor), features) = (Format::VERSION, Format::features().collect::<Vec<_>>().join(" "));
    let (version, arch) = (env!("CARGO_PKG_VERSION"), std::env::consts::ARCH);
    let flush = pmem_os::flush_instruction();
    format!("{version}\nformat     {major}.{minor}, with {features}\nprocessor  {arch}, with {flush}")
});

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) if error.use_stderr() => error.exit(),
        // `--help` or `--version`: its text is the output, not an error.
        Err(help) => return concluded(help.print().map_err(Failure::output("standard output"))),
    };
    let log = arguments.command.has_no_log().then(logging::of_warnings).flatten();
    let outcome = interrupt::handle_fatal_signals().map_err(Failure::at_signals).and_then(|()| arguments.command.run());
    log.iter().for_each(LogControl::flush);
    concluded(outcome)
}

/// Flushes standard output and returns the exit code. A failed flush is an error of the command.
fn concluded(outcome: Result<(), Failure>) -> ExitCode {
    match outcome.and_then(|()| io::stdout().flush().map_err(Failure::output("standard output"))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    const MANUAL: &str = include_str!("../../../docs/cli.md");

    #[test]
    fn the_manual_names_every_command_and_option() {
        for command in Arguments::command().get_subcommands() {
            assert!(MANUAL.contains(&format!("| `{} ", command.get_name())), "{} is missing", command.get_name());
            for option in command.get_arguments().filter_map(|argument| argument.get_long()) {
                assert!(
                    MANUAL.contains(&format!("`--{option}")) || MANUAL.contains(&format!(" --{option} ")),
                    "--{option} is missing"
                );
            }
        }
    }

    #[test]
    fn the_manual_has_every_exit_code() {
        let rows: Vec<String> = EXIT_CODES.iter().map(|(code, meaning)| format!("| {code} | {meaning} |\n")).collect();
        assert!(
            MANUAL.contains(&rows.concat()),
            "the table of exit codes in docs/cli.md is not this:\n{}",
            rows.concat()
        );
    }

    #[test]
    fn exit_codes_are_described_briefly() {
        assert!(EXIT_CODES.iter().all(|(_, meaning)| meaning.split_whitespace().count() <= 16));
    }

    #[test]
    fn the_arguments_do_not_contradict_each_other() {
        Arguments::command().debug_assert();
    }
}
