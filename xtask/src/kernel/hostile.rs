//! `cargo xtask kernel hostile --minutes N [SEED]`: hostile processes attack the module in a guest whose kernel
//! detects its own faults.
//!
//! The kernel poisons freed memory and checks red zones around allocations (`slub_debug=FZPU page_poison=1`),
//! preempts tasks anywhere (`preempt=full`), and has two processors. The minutes are the guest's, which with two
//! processors are real time. On a busy machine the guest gets less done, and a kernel would report tasks as hung;
//! this one waits longer. A guest is abandoned only if it is silent although a processor is free. The end reports the
//! processor time.
//!
//! Before that, each broken variant of the module's requests must be caught in one wave: no check of lengths; use of
//! memory that could not be copied in; readers that may write; copying out unwritten bytes; use after free; two
//! requests in one buffer. A test that misses these would detect nothing. `hostile variants [SEED]` runs only the
//! variants.

use std::path::Path;

use super::guest::{self, Boot, Guest, Kind, Region};
use crate::failure::Failure;

const NVDIMM_BYTES: u64 = 64 << 20;
const APPEND: &str = "slub_debug=FZPU page_poison=1 preempt=full sysctl.kernel.watchdog_thresh=60 \
                      sysctl.kernel.hung_task_timeout_secs=900 workqueue.watchdog_thresh=600";
const VARIANTS: [&str; 6] =
    ["LengthNotChecked", "CopyNotChecked", "ModeNotChecked", "WholeRoomCopied", "FreedFirst", "RoomShared"];

/// Attacks the module for `minutes`, after its broken variants.
pub(super) fn hostile(work: &Path, is_kasan: bool, minutes: u64, seed: u64) -> Result<(), Failure> {
    variants(work, is_kasan, seed)?;
    let guest = Guest::make(work, NVDIMM_BYTES, Kind { is_kasan, ..Kind::default() }, &guest::programs()?)?;
    match attack(&guest, None, minutes * 60, seed)? {
        None => Ok(()),
        Some(objection) => Err(format!("seed {seed}: {objection}")),
    }
}

/// Attacks the broken variants.
pub(super) fn variants(work: &Path, is_kasan: bool, seed: u64) -> Result<(), Failure> {
    let guest = Guest::make(work, NVDIMM_BYTES, Kind { is_traced: true, is_kasan }, &guest::programs()?)?;
    for variant in VARIANTS {
        guest.empty()?;
        let objection = attack(&guest, Some(variant), 0, seed)?
            .ok_or_else(|| format!("broken variant {variant} was not caught, so this test proves nothing"))?;
        println!("broken variant {variant}: caught: {objection}");
    }
    Ok(())
}

/// Runs the attack; returns the objection of the processes, if any.
fn attack(guest: &Guest, variant: Option<&str>, seconds: u64, seed: u64) -> Result<Option<String>, Failure> {
    let run = ["ink_hostile".to_owned(), seconds.to_string(), seed.to_string()];
    let boot = Boot { region: Region::Raw, variant, processor_count: 2, run: &run, arguments: &[], append: APPEND };
    guest.attend(&boot, &mut |_| {})
}
