//! The figures of the papers: `crates/figures`, built and run. A workspace of its own, built only for measuring.

use crate::failure::Failure;
use crate::rustc::{cargo, run};

/// Measures what the words say; they are the program's.
pub(crate) fn measure(words: &[&str]) -> Result<(), Failure> {
    let mut command = cargo();
    command.args(["run", "--quiet", "--release", "--manifest-path", "crates/figures/Cargo.toml", "--"]).args(words);
    run(&mut command)
}
