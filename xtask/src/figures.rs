//! The figures of the papers: `crates/figures`, built and run. A workspace of its own, built only for measuring.

use crate::failure::Failure;
use crate::rustc::{cargo, run};

/// Measures what the words say, which are the program's. `--features NAMES` before the others says what the program is built with.
pub(crate) fn measure(words: &[&str]) -> Result<(), Failure> {
    let feature_count = if words.first() == Some(&"--features") { words.len().min(2) } else { 0 };
    let (features, words) = words.split_at(feature_count);
    let mut command = cargo();
    command.args(["run", "--quiet", "--release", "--manifest-path", "crates/figures/Cargo.toml"]);
    command.args(features).arg("--").args(words);
    run(&mut command)
}
