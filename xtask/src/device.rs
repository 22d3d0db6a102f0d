//! What a device has to do, gone through line by line by a host of ours, and by a stock guest's.

use std::path::Path;
use std::process::Command;

use crate::failure::Failure;
use crate::rustc::{cargo, run};

/// Runs the list of `crates/device/tests/device/conformance.rs`, and shows each line with what came of it.
pub(crate) fn conformance() -> Result<(), Failure> {
    let mut cargo = cargo();
    cargo.args(["test", "--package", "hikv-device", "--test", "device", "--", "--nocapture", "conformance"]);
    match cargo.status().map_err(|error| format!("cargo cannot be run: {error}"))? {
        done if done.success() => Ok(()),
        failed => Err(format!("the device does not do what it has to ({failed})")),
    }
}

/// Builds the program, and has a guest attach to it (`scripts/device-guest`). The kernel is that of `cargo xtask vm`, where it was
/// fetched.
pub(crate) fn guest() -> Result<(), Failure> {
    run(cargo().args(["build", "--quiet", "--package", "hikv-cli"]))?;
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let (debug, kernel) = (this.parent().expect("a directory"), Path::new("target/vm/kernel"));
    let kernel = kernel.join("boot").is_dir().then_some(kernel);
    run(Command::new("scripts/device-guest").arg(debug.join("hikv")).args(kernel))
}
