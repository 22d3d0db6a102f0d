//! Measures the figures of the papers: builds and runs `bench/figures`, a separate workspace that only measurements
//! build.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;
use crate::rustc::{answer, cargo, run};
use crate::tree::root;

const PROGRAM: &str = "hikv-figures";
const WITH_ROCKSDB: &str = "rocksdb";
/// Directory of the library of Debian's package `librocksdb-dev`.
const ROCKSDB: &str = "/usr/lib/x86_64-linux-gnu";
/// A function that the crate links to and Debian's version lacks. No measured code calls it.
const LACKED: &str = "rocksdb_write_buffer_manager_destroy";

/// Measures the figures given by `words`, the arguments of the program. A leading `--features NAMES` sets cargo
/// features.
pub(crate) fn measure(words: &[&str]) -> Result<(), Failure> {
    let (features, words) = match *words {
        ["--features", names, ref rest @ ..] => (Some(names), rest),
        _ => (None, words),
    };
    // Exact counts need no optimised build, which takes longer.
    let profile = if words.first() == Some(&"slice") { Profile::Dev } else { Profile::Release };
    run(Command::new(build(features, profile)?).args(words))
}

/// Cargo's profile of a build.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Profile {
    Dev,
    Release,
}

/// Builds the program with RocksDB and returns its path.
pub(crate) fn with_rocksdb() -> Result<PathBuf, Failure> {
    build(Some(WITH_ROCKSDB), Profile::Release)
}

/// Builds the program and returns its path. Links Debian's RocksDB if it is installed: it is older than the crate's
/// own, but saves half an hour of compiling.
fn build(features: Option<&str>, profile: Profile) -> Result<PathBuf, Failure> {
    let own = || Ok::<_, Failure>(root()?.join("bench/figures/target"));
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(own, |target| Ok(target.into()))?;
    let mut command = cargo();
    command.args(["rustc", "--quiet", "--manifest-path", "bench/figures/Cargo.toml"]);
    let folder = match profile {
        Profile::Dev => "debug",
        Profile::Release => {
            command.arg("--release");
            "release"
        }
    };
    command.args(["--bin", PROGRAM, "--target-dir"]).arg(&target);
    if let Some(names) = features {
        command.args(["--features", names]);
    }
    let wants_rocksdb = features.is_some_and(|names| names.split(',').any(|name| name == WITH_ROCKSDB));
    if wants_rocksdb && Path::new(ROCKSDB).join("librocksdb.so").exists() {
        println!("RocksDB is {}", answer(Command::new("dpkg-query").args(["-W", "librocksdb-dev"]))?.trim());
        command.env("ROCKSDB_LIB_DIR", ROCKSDB).args(["--", &format!("-Clink-arg=-Wl,--defsym={LACKED}=main")]);
    }
    run(&mut command)?;
    Ok(target.join(folder).join(PROGRAM))
}
