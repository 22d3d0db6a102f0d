//! The machine and the command, without which figures mean little.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::Error;

/// The command that builds and runs this program.
const COMMAND: &str =
    if cfg!(feature = "rocksdb") { "cargo xtask figures --features rocksdb" } else { "cargo xtask figures" };

/// The recorded facts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) command: String,
    /// The commit of the measured program, and whether files differed from it; empty if unknown.
    #[serde(default)]
    pub(crate) commit: String,
    pub(crate) processor: String,
    pub(crate) core_count: usize,
    pub(crate) kernel: String,
    /// The time of the run, in seconds since 1970.
    pub(crate) unix_time_s: u64,
    /// The runnable threads before the run, as an average over a minute: 0 on an idle machine.
    pub(crate) load_before: f64,
    /// A read of a random cache line whose address came from the read before.
    pub(crate) dependent_read_ns: f64,
    /// The time to make 256 bytes durable by writing, flushing every line, and a fence.
    pub(crate) persist_256_ns: f64,
    pub(crate) flush_instruction: String,
}

impl Machine {
    /// Returns the command without the place of its results.
    pub(crate) fn shown_command(&self) -> String {
        let mut words = self.command.split(' ');
        let mut shown = Vec::new();
        while let Some(word) = words.next() {
            if word == "--out" {
                words.next();
            } else {
                shown.push(word);
            }
        }
        shown.join(" ")
    }

    pub(crate) fn probe(dir: &Path) -> Result<Machine, Error> {
        let probe = pmem_os::probe(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
        let cpuinfo = fs::read_to_string("/proc/cpuinfo")?;
        let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
        Ok(Machine {
            command: env::args().skip(1).fold(COMMAND.to_owned(), |command, word| command + " " + &word),
            commit: commit(),
            processor: model.map_or_else(|| env::consts::ARCH.to_owned(), |(_, model)| model.trim().to_owned()),
            core_count: thread::available_parallelism()?.get(),
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease")?.trim().to_owned(),
            unix_time_s: since.as_secs(),
            load_before: load()?,
            dependent_read_ns: probe.dependent_read_ns,
            persist_256_ns: probe.persist_by_flush_256_ns,
            flush_instruction: probe.flush_instruction.to_owned(),
        })
    }
}

/// Returns the commit of the working tree that this program was built from; nothing without Git.
fn commit() -> String {
    let mut git = Command::new("git");
    git.args(["-C", env!("CARGO_MANIFEST_DIR"), "describe", "--always", "--dirty", "--exclude", "*"]);
    let described = git.output().ok().filter(|output| output.status.success());
    described.map_or_else(String::new, |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Returns the system's load average over a minute.
fn load() -> Result<f64, Error> {
    let averages = fs::read_to_string("/proc/loadavg")?;
    Ok(averages.split(' ').next().unwrap_or_default().parse()?)
}
