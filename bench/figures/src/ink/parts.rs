//! The parts of an operation's time: samples of the processor, sorted by source file. A sample counts for the innermost
//! function that belongs to a part.

use std::collections::BTreeMap;

use pprof::{Frames, ProfilerGuard, ProfilerGuardBuilder, Symbol};

use crate::Error;

/// The total, the paper's parts, and the rest: the engine's calls, making keys and checking values.
pub(super) const PARTS: &[&str] = &[ALL, SEARCHING, MODIFICATION, MEMORY, LOGGING, TRANSFER, REST];

/// All parts together.
pub(super) const ALL: &str = "all";

pub(super) const SEARCHING: &str = "searching";
const MODIFICATION: &str = "modification";
const MEMORY: &str = "memory";
pub(super) const LOGGING: &str = "logging";
const TRANSFER: &str = "transfer";
const REST: &str = "rest";

/// Samples per second of processor time: not a divisor of common clock rates.
const FREQUENCY: i32 = 997;

/// A running sampling.
pub(super) struct Sampled(ProfilerGuard<'static>);

impl Sampled {
    pub(super) fn start() -> Result<Sampled, Error> {
        Ok(Sampled(ProfilerGuardBuilder::default().frequency(FREQUENCY).build()?))
    }

    /// Returns each part's share of the samples; only the total if the turn was too short for a sample.
    pub(super) fn shares(self) -> Result<Vec<(&'static str, f64)>, Error> {
        let report = self.0.report().build()?;
        let mut counts: BTreeMap<&str, f64> = BTreeMap::new();
        for (frames, count) in &report.data {
            *counts.entry(part_of_frames(frames)).or_default() += *count as f64;
        }
        let sum: f64 = counts.values().sum();
        if counts.is_empty() {
            return Ok(vec![(ALL, 1.0)]);
        }
        counts.insert(ALL, sum);
        Ok(PARTS.iter().map(|&part| (part, counts.get(part).copied().unwrap_or(0.0) / sum)).collect())
    }
}

fn part_of_frames(frames: &Frames) -> &'static str {
    let part = |symbol: &Symbol| part_of(symbol.filename.as_ref()?.to_str()?, &symbol.name());
    frames.frames.iter().flatten().find_map(part).unwrap_or(REST)
}

/// Returns the part that a function of a file belongs to.
fn part_of(file: &str, function: &str) -> Option<&'static str> {
    let (folder, name) = file.rsplit_once("/src/")?;
    let is_put = ["insert_pair", "set_pair", "set_meta"].iter().any(|put| function.contains(put));
    Some(match (folder.rsplit('/').next()?, name) {
        ("undo-log", _) => LOGGING,
        ("heap", _) | ("pbtree", "retire.rs") => MEMORY,
        ("pbtree", "node.rs") if is_put => MODIFICATION,
        ("pbtree", "key.rs") if function.contains("write") => TRANSFER,
        ("pbtree", "node.rs" | "key.rs" | "nodes.rs" | "read.rs") => SEARCHING,
        ("pbtree", _) if name.starts_with("locks/") => SEARCHING,
        ("pbtree", "value.rs") | ("ink", "copy.rs") => TRANSFER,
        ("pbtree", "write.rs" | "writer.rs" | "split.rs" | "pack.rs" | "stamps.rs") => MODIFICATION,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn function_belongs_to_part_of_its_file() {
        let of = |file, function| part_of(file, function);
        assert_eq!(of("/x/crates/pbtree/src/nodes.rs", "descend"), Some(SEARCHING));
        assert_eq!(of("/x/crates/pbtree/src/locks/latch.rs", "try_lock"), Some(SEARCHING));
        assert_eq!(of("/x/crates/pbtree/src/node.rs", "pbtree::node::Node<M>::insert_pair"), Some(MODIFICATION));
        assert_eq!(of("/x/crates/pbtree/src/key.rs", "pbtree::key::write"), Some(TRANSFER));
        assert_eq!(of("/x/crates/undo-log/src/run.rs", "write"), Some(LOGGING));
        assert_eq!(of("/x/crates/heap/src/lane.rs", "reserve"), Some(MEMORY));
        assert_eq!(of("/x/crates/pmem-os/src/medium.rs", "flush"), None);
    }
}
