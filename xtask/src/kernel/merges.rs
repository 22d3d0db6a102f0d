//! `cargo xtask kernel merges`: the module's merges in a guest. Keys are put and most are deleted, until the work item has made the tree smaller by half of
//! its leaves; the machine is cut off while it goes on. The next boot has every key that was not deleted, and no other; the rest is deleted, and the
//! other nodes go, too (`ink_merges`).

use std::path::Path;

use super::guest::{self, Boot, Guest, Kind, Region};
use crate::failure::Failure;

const NVDIMM_BYTES: u64 = 64 << 20;
const KEY_COUNT: u32 = 10_000;

/// Merges, cuts, and merges on.
pub(super) fn merges(work: &Path, is_kasan: bool) -> Result<(), Failure> {
    let guest = Guest::make(work, NVDIMM_BYTES, Kind { is_kasan, ..Kind::default() }, &guest::merges()?)?;
    for part in ["begin", "end"] {
        let run = ["ink_merges".to_owned(), part.to_owned(), KEY_COUNT.to_string()];
        let boot = Boot { region: Region::Raw, twin: None, processor_count: 1, run: &run, arguments: &[], append: "" };
        if let Some(objection) = guest.attend(&boot, &mut |_| {})? {
            return Err(objection);
        }
    }
    println!("nodes went as keys did, and no key that stayed was lost by the cut between");
    Ok(())
}
