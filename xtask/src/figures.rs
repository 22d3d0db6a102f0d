//! The figures of the papers: `crates/figures`, built and run. A workspace of its own, built only for measuring.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;
use crate::rustc::{answer, cargo, run};
use crate::tree::root;

const PROGRAM: &str = "hikv-figures";
/// Where Debian's package `librocksdb-dev` has its library.
const ROCKSDB: &str = "/usr/lib/x86_64-linux-gnu";
/// What the crate links to and Debian's version does not have. Nothing that is measured has one of these, so it is never called.
const LACKED: &str = "rocksdb_write_buffer_manager_destroy";

/// Measures what the words say, which are the program's. `--features NAMES` before the others says what the program is built with.
pub(crate) fn measure(words: &[&str]) -> Result<(), Failure> {
    let feature_count = if words.first() == Some(&"--features") { words.len().min(2) } else { 0 };
    let (features, words) = words.split_at(feature_count);
    let mut command = cargo();
    command.args(["run", "--quiet", "--release", "--manifest-path", "crates/figures/Cargo.toml"]);
    command.args(features).arg("--").args(words);
    run(&mut command)
}

/// The program, with RocksDB; where it lies. Debian's library is linked, where it is installed: it is older than the crate's own.
pub(crate) fn with_rocksdb() -> Result<PathBuf, Failure> {
    let own = || Ok::<_, Failure>(root()?.join("crates/figures/target"));
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(own, |target| Ok(target.into()))?;
    let mut command = cargo();
    command.args(["rustc", "--quiet", "--release", "--manifest-path", "crates/figures/Cargo.toml"]);
    command.args(["--features", "rocksdb", "--bin", PROGRAM, "--target-dir"]).arg(&target);
    if Path::new(ROCKSDB).join("librocksdb.so").exists() {
        println!("RocksDB is {}", answer(Command::new("dpkg-query").args(["-W", "librocksdb-dev"]))?.trim());
        command.env("ROCKSDB_LIB_DIR", ROCKSDB).args(["--", &format!("-Clink-arg=-Wl,--defsym={LACKED}=main")]);
    }
    run(&mut command)?;
    Ok(target.join("release").join(PROGRAM))
}
