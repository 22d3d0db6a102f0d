//! `cargo xtask kernel merges`: tests the module's merges in a guest. Keys are written and most are deleted, until
//! the work item has halved the number of leaves; the power is cut during that. The next boot must have exactly the
//! keys that were not deleted. Then the remaining keys are deleted, and the other nodes must disappear as well
//! (`ink_merges`).

use std::path::Path;

use super::guest::{self, Boot, Guest, Kind, Region};
use crate::failure::Failure;

const NVDIMM_BYTES: u64 = 64 << 20;
const KEY_COUNT: u32 = 10_000;

/// Merges, cuts the power, and continues.
pub(super) fn merges(work: &Path, is_kasan: bool) -> Result<(), Failure> {
    let guest = Guest::make(work, NVDIMM_BYTES, Kind { is_kasan, ..Kind::default() }, &guest::merges()?)?;
    for part in ["begin", "end"] {
        let run = ["ink_merges".to_owned(), part.to_owned(), KEY_COUNT.to_string()];
        let boot =
            Boot { region: Region::Raw, variant: None, processor_count: 1, run: &run, arguments: &[], append: "" };
        if let Some(objection) = guest.attend(&boot, &mut |_| {})? {
            return Err(objection);
        }
    }
    println!("nodes were merged as keys were deleted, and the cut lost no remaining key");
    Ok(())
}
