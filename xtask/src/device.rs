//! Tests an NVMe-KV device: conformance, load, hostile hosts, speed, and a Linux guest as host.

use std::path::Path;
use std::process::Command;

use crate::failure::Failure;
use crate::rustc::{cargo, run};

/// Runs the list in `frontends/device/tests/device/conformance.rs` and prints each item with its result.
pub(crate) fn conformance() -> Result<(), Failure> {
    let mut cargo = cargo();
    cargo.args(["test", "--package", "hikv-device", "--test", "device", "--", "--nocapture", "conformance"]);
    match cargo.status().map_err(|error| format!("cargo cannot be run: {error}"))? {
        done if done.success() => Ok(()),
        failed => Err(format!("the device does not conform ({failed})")),
    }
}

/// Kills a device under load `count` times and verifies the completed writes (`frontends/cli/tests/program/device.rs`).
pub(crate) fn rounds(count: u64) -> Result<(), Failure> {
    long("hikv-cli", "program", "device::often_killed_nvme_target", ("HIKV_ROUNDS", count))
}

/// Sends hostile input to a device for `minutes` (`frontends/device/tests/device/fuzz.rs`).
pub(crate) fn fuzz(minutes: u64) -> Result<(), Failure> {
    long("hikv-device", "device", "fuzz::hosts_that_mean_harm_for_minutes", ("HIKV_MINUTES", minutes))
}

/// Measures the time of commands (`frontends/device/tests/device/speed.rs`).
pub(crate) fn speed() -> Result<(), Failure> {
    let test = ["test", "--release", "--package", "hikv-device", "--test", "device", "--", "--ignored", "--nocapture"];
    run(cargo().args(test).args(["--test-threads=1", "speed::what"]))
}

/// Runs an ignored test, whose duration is set by an environment variable.
fn long(package: &str, test: &str, name: &str, (variable, value): (&str, u64)) -> Result<(), Failure> {
    let mut cargo = cargo();
    cargo.env(variable, value.to_string());
    run(cargo.args(["test", "--package", package, "--test", test, "--", "--ignored", "--nocapture", name]))
}

/// Builds the program and lets a guest attach to it (`scripts/device-guest`). Uses the kernel of `cargo xtask vm` if
/// it has been downloaded.
pub(crate) fn guest() -> Result<(), Failure> {
    run(cargo().args(["build", "--quiet", "--package", "hikv-cli"]))?;
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let (debug, kernel) = (this.parent().expect("a directory"), Path::new("target/vm/kernel"));
    let kernel = kernel.join("boot").is_dir().then_some(kernel);
    run(Command::new("scripts/device-guest").arg(debug.join("hikv")).args(kernel))
}
