//! What a device has to do, gone through line by line.

use std::process::Command;

use crate::failure::Failure;

/// Runs the list of `crates/device/tests/device/conformance.rs`, and shows each line with what came of it.
pub(crate) fn conformance() -> Result<(), Failure> {
    let mut cargo = Command::new("cargo");
    cargo.args(["test", "--package", "hikv-device", "--test", "device", "--", "--nocapture", "conformance"]);
    match cargo.status().map_err(|error| format!("cargo cannot be run: {error}"))? {
        done if done.success() => Ok(()),
        failed => Err(format!("the device does not do what it has to ({failed})")),
    }
}
