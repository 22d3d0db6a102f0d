//! Complete crash explorations.

use std::process::Command;

use crate::failure::Failure;

/// Runs all explorations, including ignored ones, or those whose name contains one of `names`.
pub(crate) fn whole(names: &[&str]) -> Result<(), Failure> {
    let mut cargo = Command::new("cargo");
    cargo.args(["test", "--release", "--package", "hikv-testkit", "--test", "hikv", "--", "--include-ignored"]);
    let status = cargo.args(names).env("HIKV_TEST_EXTENT", "whole").status();
    match status.map_err(|error| format!("cargo cannot be run: {error}"))? {
        done if done.success() => Ok(()),
        failed => Err(format!("an exploration did not pass ({failed})")),
    }
}
