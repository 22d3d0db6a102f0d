//! `cargo xtask kernel speed [COUNT]`: compares the module's calls with the library's, in one guest's kernel, on the
//! same NVDIMM.
//!
//! The emulator's clock counts instructions, so the results are instructions of a guest with one processor, including
//! the kernel's. They are not times: neither caches nor write-backs take any time here.

use std::collections::BTreeMap;
use std::path::Path;

use super::guest::{self, Boot, Guest, Kind, Region, SPEED};
use crate::failure::Failure;
use crate::vm::ICOUNT_NS;

const NVDIMM_BYTES: u64 = 512 << 20;
const OPERATIONS: [&str; 5] = ["insert", "get", "update", "scan of 50", "delete"];

/// Instructions per operation, by the operation's name.
type Measured = BTreeMap<String, u64>;

/// Measures `count` operations of each kind and prints a table.
pub(super) fn speed(work: &Path, count: u64) -> Result<(), Failure> {
    let guest = Guest::make(work, NVDIMM_BYTES, Kind::default(), &guest::speed()?)?;
    let of = |region, place| measured(&guest, region, place, count);
    let module = of(Region::Device { is_new: true }, "/dev/hikv-ink")?;
    let mapped = of(Region::Ext4 { has_dax: true }, "/store/store")?;
    let journaled = of(Region::Ext4 { has_dax: false }, "/store/store")?;
    println!("instructions per operation; {count} items of 16 and 256 bytes, one thread");
    println!(
        "| operation | the module | the library, DAX | the library, no DAX | module / library, DAX | no DAX / DAX |"
    );
    println!("|---|---|---|---|---|---|");
    for name in OPERATIONS {
        let of = |measured: &Measured| measured.get(name).copied().ok_or(format!("{name} was not measured"));
        let (kernel, dax, no_dax) = (of(&module)?, of(&mapped)?, of(&journaled)?);
        let ratio = |a: u64, b: u64| a as f64 / b as f64;
        println!("| {name} | {kernel} | {dax} | {no_dax} | {:.2} | {:.2} |", ratio(kernel, dax), ratio(no_dax, dax));
    }
    Ok(())
}

fn measured(guest: &Guest, region: Region, place: &str, count: u64) -> Result<Measured, Failure> {
    guest.empty()?;
    let run = [SPEED.to_owned(), place.to_owned(), count.to_string()];
    let boot = Boot { region, variant: None, processor_count: 1, run: &run, arguments: &[], append: "" };
    let mut measured = Measured::new();
    let objection = guest.attend(&boot, &mut |line| {
        let said = line.strip_prefix("speed ").and_then(|rest| rest.rsplit_once(' '));
        if let Some((name, Ok(ns))) = said.map(|(name, ns)| (name, ns.parse::<u64>())) {
            measured.insert(name.to_owned(), ns / ICOUNT_NS);
        }
    })?;
    objection.map_or(Ok(measured), Err)
}
