//! The compiler and cargo that build this workspace.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use crate::failure::Failure;

/// Returns the compiler, as cargo would run it.
pub(crate) fn rustc() -> Command {
    Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
}

/// Returns the cargo that runs this program.
pub(crate) fn cargo() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Returns the target that the compiler itself runs on.
pub(crate) fn host() -> Result<String, Failure> {
    let version = answer(rustc().arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| format!("rustc -vV names no host: {version}"))
}

/// Returns the directory of the libraries of `target`, installed or not.
pub(crate) fn libraries(target: &str) -> Result<PathBuf, Failure> {
    let path = answer(rustc().args(["--print", "target-libdir", "--target", target]))?;
    Ok(PathBuf::from(path.trim()))
}

/// Runs a command to its end.
pub(crate) fn run(command: &mut Command) -> Result<(), Failure> {
    let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} ended with {status}")) }
}

/// Runs a command and returns its output.
pub(crate) fn answer(command: &mut Command) -> Result<String, Failure> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{command:?} ended with {}", output.status));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("{command:?}: {error}"))
}
