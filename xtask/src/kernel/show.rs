//! `cargo xtask kernel run`: the module in a guest, before one's eyes. Keys are put by one process and read by another; a program
//! writes, and says what is acknowledged; the machine is cut off; the next boot has every acknowledged key. A device whose writes are not
//! durable when the module believes so is refused (virtio-pmem), and a store stops whose memory is reported to have failed.

use super::guest::{self, Boot, Guest, Kind, Region, THREAD_COUNT};
use crate::failure::Failure;
use crate::vm::life::{Ended, Lives};

const NVDIMM_BYTES: u64 = 256 << 20;
/// Changes until the cut.
const CHANGE_COUNT: u64 = 300;

/// Shows it.
pub(super) fn show(work: &std::path::Path) -> Result<(), Failure> {
    let guest = Guest::make(work, NVDIMM_BYTES, Kind::default(), &guest::programs()?)?;
    let mut lives = Lives::new(THREAD_COUNT, 1);
    println!("\nthe machine is switched on, with an empty NVDIMM; it is emulated, so this takes a while");
    live(&guest, &mut lives, true)?;
    let acknowledged = &lives.acknowledged;
    println!(
        "\nthe machine is cut off, after two threads had {} and {} changes acknowledged; and switched on again",
        acknowledged[0], acknowledged[1]
    );
    live(&guest, &mut lives, false)?;
    println!(
        "\nevery acknowledged key is there: what the program found is what those changes leave, and so are the three fruits"
    );
    println!("\nthe kernel is made to believe that memory of the NVDIMM has failed");
    failed(&guest)?;
    println!(
        "\nthe machine gets a virtio-pmem device in the place of the NVDIMM: its host has a write cache before it"
    );
    refused(&guest)
}

/// A boot that runs no program.
fn look(guest: &Guest, region: Region, each: &mut dyn FnMut(&str)) -> Result<(), Failure> {
    let boot = Boot { region, twin: None, processor_count: 1, run: &["none".to_owned()], arguments: &[], append: "" };
    guest.attend(&boot, each)?.map_or(Ok(()), Err)
}

/// Nothing is done any more once the kernel has said that memory of the region has failed.
fn failed(guest: &Guest) -> Result<(), Failure> {
    let (mut read_count, mut refused_count) = (0, 0);
    look(guest, Region::Failing, &mut |line| {
        read_count += u32::from(line == "green");
        refused_count += u32::from(line.contains("os error 5"));
    })?;
    if (read_count, refused_count) != (1, 1) {
        return Err(format!("a key was read {read_count} times and refused {refused_count} times, and not once each"));
    }
    println!("\nthe store stopped when the kernel reported memory that has failed");
    Ok(())
}

/// The module takes no device whose writes are not durable when it believes so.
fn refused(guest: &Guest) -> Result<(), Failure> {
    guest.empty()?;
    let mut is_named = false;
    look(guest, Region::WriteBack, &mut |line| is_named |= line.contains("write cache"))?;
    if !is_named {
        return Err("the kernel's log does not say why the module is not loaded".to_owned());
    }
    println!("\nthe module refuses it: what it acknowledged would not survive a loss of power");
    Ok(())
}

fn live(guest: &Guest, lives: &mut Lives, is_new: bool) -> Result<(), Failure> {
    let run = lives.arguments("show");
    let boot = Boot {
        region: Region::Device { is_new },
        twin: None,
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
        Ended::Held if fruits.len() < 3 => Err(format!("of three fruits these are there: {fruits:?}")),
        Ended::Held => Ok(()),
    }
}
