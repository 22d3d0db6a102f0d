//! `cargo xtask kernel run`: demonstrates the module in a guest. One process writes keys and another reads them; a
//! program writes and prints each acknowledged change; the power is cut; the next boot must have every acknowledged
//! key. A virtio-pmem device, whose writes are not durable, must be refused, and a store must stop when the kernel
//! reports failed memory.

use super::guest::{self, Boot, Guest, Kind, Region, THREAD_COUNT};
use crate::failure::Failure;
use crate::vm::life::{Ended, Lives};

const NVDIMM_BYTES: u64 = 256 << 20;
/// Changes before the cut.
const CHANGE_COUNT: u64 = 300;

/// Runs the demonstration.
pub(super) fn show(work: &std::path::Path) -> Result<(), Failure> {
    let guest = Guest::make(work, NVDIMM_BYTES, Kind::default(), &guest::programs()?)?;
    let mut lives = Lives::new(THREAD_COUNT, 1);
    println!("\nthe machine boots with an empty NVDIMM; it is emulated, so this takes a while");
    live(&guest, &mut lives, true)?;
    let acknowledged = lives.acknowledged.counts();
    println!(
        "\nthe power was cut after {} and {} acknowledged changes of two threads; the machine boots again",
        acknowledged[0], acknowledged[1]
    );
    live(&guest, &mut lives, false)?;
    println!("\nevery acknowledged change is there, and so are the three fruits");
    println!("\nsimulating failed memory in the NVDIMM");
    failed(&guest)?;
    println!("\nthe machine gets a virtio-pmem device instead of the NVDIMM: its host has a write cache");
    refused(&guest)
}

/// Boots without a program.
fn look(guest: &Guest, region: Region, each: &mut dyn FnMut(&str)) -> Result<(), Failure> {
    let boot =
        Boot { region, variant: None, processor_count: 1, run: &["none".to_owned()], arguments: &[], append: "" };
    guest.attend(&boot, each)?.map_or(Ok(()), Err)
}

/// Checks that every request fails once the kernel has reported failed memory in the region.
fn failed(guest: &Guest) -> Result<(), Failure> {
    let (mut read_count, mut refused_count) = (0, 0);
    look(guest, Region::Failing, &mut |line| {
        read_count += u32::from(line == "green");
        refused_count += u32::from(line.contains("os error 5"));
    })?;
    if (read_count, refused_count) != (1, 1) {
        return Err(format!("a key was read {read_count} times and refused {refused_count} times; expected once each"));
    }
    println!("\nthe store stopped when the kernel reported failed memory");
    Ok(())
}

/// Checks that the module refuses a device whose writes are not durable.
fn refused(guest: &Guest) -> Result<(), Failure> {
    guest.empty()?;
    let mut is_named = false;
    look(guest, Region::WriteBack, &mut |line| is_named |= line.contains("write cache"))?;
    if !is_named {
        return Err("the kernel's log has no reason for the refused module".to_owned());
    }
    println!("\nthe module refuses it: acknowledged writes would not survive a power loss");
    Ok(())
}

fn live(guest: &Guest, lives: &mut Lives, is_new: bool) -> Result<(), Failure> {
    let run = lives.arguments("show");
    let boot = Boot {
        region: Region::Device { is_new },
        variant: None,
        processor_count: 1,
        run: &run,
        arguments: &[],
        append: "",
    };
    let wanted = if is_new { CHANGE_COUNT } else { 0 };
    let mut fruits: Vec<&str> = Vec::new();
    let ended = lives.live(guest.boot(&boot)?, Some(wanted), &mut |line| {
        println!("  | {line}");
        fruits.extend(["apple\tred", "pear\tgreen", "plum\tblue"].iter().filter(|fruit| line == **fruit).copied());
    })?;
    match ended {
        Ended::Lost(why) => Err(why),
        Ended::Held if fruits.len() < 3 => Err(format!("of three fruits only these were found: {fruits:?}")),
        Ended::Held => Ok(()),
    }
}
