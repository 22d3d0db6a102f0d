//! `cargo xtask kernel hostile --minutes N`: processes that mean harm to the device, in a guest whose kernel looks for its own faults.
//!
//! The kernel fills freed memory and looks at red zones around what it lends (`slub_debug=FZPU page_poison=1`), may take the processor
//! from a task anywhere (`preempt=full`), and has two processors. The minutes are the guest's.

use std::path::Path;
use std::time::Duration;

use super::guest::{Boot, Guest, Region};
use crate::failure::Failure;
use crate::vm::lines_of;

const NVDIMM_BYTES: u64 = 64 << 20;
const APPEND: &str = "slub_debug=FZPU page_poison=1 preempt=full";
/// A wave takes less, on a machine however busy.
const SILENCE_MAX: Duration = Duration::from_secs(900);

/// Lets them try for so long.
pub(super) fn hostile(work: &Path, minutes: u64, seed: u64) -> Result<(), Failure> {
    let guest = Guest::make(work, NVDIMM_BYTES, false)?;
    let run = ["ink_hostile".to_owned(), (minutes * 60).to_string(), seed.to_string()];
    let boot = Boot { region: Region::Raw, twin: None, processor_count: 2, run: &run, arguments: &[], append: APPEND };
    let mut qemu = guest.boot(&boot)?;
    let mut ended = Err("the guest says nothing".to_owned());
    let lines = lines_of(&mut qemu);
    while let Ok(line) = lines.recv_timeout(SILENCE_MAX) {
        println!("  | {line}");
        if line.starts_with("lost") || line.contains("Kernel panic") || line.starts_with("ended") {
            ended = if line == "ended 0" { Ok(()) } else { Err(format!("seed {seed}: {line}")) };
            break;
        }
        ended = Err(format!("seed {seed}: the guest says nothing more after '{line}'"));
    }
    _ = qemu.kill();
    _ = qemu.wait();
    ended
}
