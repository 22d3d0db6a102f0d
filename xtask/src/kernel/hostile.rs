//! `cargo xtask kernel hostile --minutes N [SEED]`: processes that mean harm to the device, in a guest whose kernel looks for its own faults.
//!
//! The kernel fills freed memory and looks at red zones around what it lends (`slub_debug=FZPU page_poison=1`), may take the processor
//! from a task anywhere (`preempt=full`), and has two processors. The minutes are the guest's: with two processors its clock is the machine's. On a machine that
//! is busy the guest gets less done in them, and a kernel takes that for tasks that hang: this one has more patience. Given up is a guest alone that says nothing
//! though there is a processor for it. In the end there is said how much of a processor's time there was.
//!
//! Before that, broken twins of the module's requests must be caught, each in one wave: one without a check of lengths, one that
//! works on what could not be copied in, one that lets readers write, one that copies out what nobody wrote, one that uses
//! memory that it gave back, one that lets two requests use one room. What does not see these sees nothing. `hostile twins [SEED]` runs them alone.

use std::path::Path;

use super::guest::{self, Boot, Guest, Kind, Region};
use crate::failure::Failure;

const NVDIMM_BYTES: u64 = 64 << 20;
const APPEND: &str = "slub_debug=FZPU page_poison=1 preempt=full sysctl.kernel.watchdog_thresh=60 \
                      sysctl.kernel.hung_task_timeout_secs=900 workqueue.watchdog_thresh=600";
const TWINS: [&str; 6] =
    ["LengthNotChecked", "CopyNotChecked", "ModeNotChecked", "WholeRoomCopied", "FreedFirst", "RoomShared"];

/// Lets them try for so long, after the twins.
pub(super) fn hostile(work: &Path, is_kasan: bool, minutes: u64, seed: u64) -> Result<(), Failure> {
    twins(work, is_kasan, seed)?;
    let guest = Guest::make(work, NVDIMM_BYTES, Kind { is_kasan, ..Kind::default() }, &guest::programs()?)?;
    match attack(&guest, None, minutes * 60, seed)? {
        None => Ok(()),
        Some(objection) => Err(format!("seed {seed}: {objection}")),
    }
}

/// Lets them try the twins.
pub(super) fn twins(work: &Path, is_kasan: bool, seed: u64) -> Result<(), Failure> {
    let guest = Guest::make(work, NVDIMM_BYTES, Kind { is_traced: true, is_kasan }, &guest::programs()?)?;
    for twin in TWINS {
        guest.empty()?;
        let objection = attack(&guest, Some(twin), 0, seed)?.ok_or_else(|| {
            format!("the twin {twin} was not caught: what these processes see is not to be relied on")
        })?;
        println!("the twin {twin}: caught: {objection}");
    }
    Ok(())
}

/// What they object to, if they do.
fn attack(guest: &Guest, twin: Option<&str>, seconds: u64, seed: u64) -> Result<Option<String>, Failure> {
    let run = ["ink_hostile".to_owned(), seconds.to_string(), seed.to_string()];
    let boot = Boot { region: Region::Raw, twin, processor_count: 2, run: &run, arguments: &[], append: APPEND };
    guest.attend(&boot, &mut |_| {})
}
