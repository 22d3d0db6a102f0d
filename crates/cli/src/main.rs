//! The `hikv` program: a store's items, state and speed from a terminal, and a server for it.

mod commands;
mod durable;
mod failure;
mod formats;
mod given;
mod input;
mod interrupt;
mod kept;
mod logging;
mod opening;
mod output;
mod plural;
mod progress;
mod read_cache;
mod serving;
mod skipped;
mod tls;
mod verified;

use std::process::ExitCode;
use std::sync::LazyLock;

use clap::Parser;
use hikv::Format;

use commands::Command;
use failure::Failure;
use server::LogControl;

/// A key-value store for byte-addressable memory.
#[derive(Parser)]
#[command(name = "hikv", version, long_version = VERSION.as_str(), after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "\
Keys and values are any bytes. After -- a word that begins with - is a key or a value, not an option.
Exit codes: 0 done; 1 a key was not found, or something is damaged or wrong; 2 an error; 130 interrupted.";

/// What `--version` tells; `-V` its first line.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let ((major, minor), features) = (Format::VERSION, Format::features().collect::<Vec<_>>().join(" "));
    let (version, arch) = (env!("CARGO_PKG_VERSION"), std::env::consts::ARCH);
    let flush = pmem_os::flush_instruction();
    format!("{version}\nformat     {major}.{minor}, with {features}\nprocessor  {arch}, with {flush}")
});

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let log = arguments.command.has_no_log().then(logging::of_warnings).flatten();
    let outcome =
        interrupt::survive_limit_on_files().map_err(Failure::at_signals).and_then(|()| arguments.command.run());
    log.iter().for_each(LogControl::flush);
    match outcome {
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
    fn the_arguments_do_not_contradict_each_other() {
        Arguments::command().debug_assert();
    }
}
