//! `cargo xtask kernel figure8 [PROCESSORS] [OPTIONS]`: measures figure 8 of InK's paper in a guest with an emulated
//! NVDIMM.
//!
//! One to four threads run on ext4 with DAX and without DAX, where the kernel's page cache holds the pages. All
//! systems must survive only the death of the process. The options are those of `cargo xtask figures`.
//!
//! With one processor the emulator's clock counts instructions: ratios are ratios of instructions, and threads share
//! the processor. With more processors the clock is real time, of emulated processors. Neither measures the time of
//! memory. By default the guest has a processor for each thread of the figure, as far as this machine has them.

use std::collections::BTreeMap;
use std::path::Path;

use super::guest::{Boot, Guest, Kind, Region};
use crate::failure::Failure;
use crate::figures;

const NVDIMM_BYTES: u64 = 1 << 30;
/// Workloads, and the paper's ratios of RocksDB's time to InK's.
const OPERATIONS: [(&str, &str); 3] =
    [("read-threads", "1 to 3.2"), ("update-threads", "1 to 3.7"), ("insert-threads", "0.27 to 1")];
const THREADS: [&str; 4] = ["1", "2", "3", "4"];
/// Amounts that an emulator handles in minutes.
const LESS: [&str; 6] = ["--records", "20000", "--operations", "5000", "--rounds", "3"];
/// Ratios: numerator and denominator, each a system with or without DAX.
const RATIOS: [[(bool, &str); 2]; 6] = [
    [(true, "rocksdb"), (true, "ink")],
    [(true, "rocksdb"), (true, "ink-library")],
    [(false, "rocksdb"), (false, "ink")],
    [(false, "rocksdb"), (false, "ink-library")],
    [(false, "ink"), (true, "ink")],
    [(false, "ink-library"), (true, "ink-library")],
];

/// Nanoseconds per operation in the median round, by workload, number of threads, and system.
type Measured = BTreeMap<[String; 3], f64>;

/// Measures both and prints the table.
pub(super) fn figure8(work: &Path, processors: Option<u64>, options: &[&str]) -> Result<(), Failure> {
    let here = std::thread::available_parallelism().map_or(1, |count| count.get()).min(THREADS.len());
    let processor_count = processors.map_or(Ok(here as u32), u32::try_from).map_err(|_| "too many processors")?;
    let guest = Guest::make(work, NVDIMM_BYTES, Kind::default(), &[figures::with_rocksdb()?])?;
    let options = if options.is_empty() { &LESS[..] } else { options };
    let of = |has_dax| measured(&guest, has_dax, processor_count, options);
    let (dax, no_dax) = (of(true)?, of(false)?);
    println!("processors: {processor_count}, emulated; {}", options.join(" "));
    let name = |(has_dax, system)| format!("{system}{}", if has_dax { ", DAX" } else { "" });
    let names = RATIOS.map(|pair| pair.map(name).join(" / "));
    println!("| operation | threads | printed, rocksdb / ink | {} |", names.join(" | "));
    println!("|{}", "---|".repeat(3 + RATIOS.len()));
    for (operation, printed) in OPERATIONS {
        for threads in THREADS {
            let ns = |(has_dax, system): (bool, &str)| {
                let place = [operation, threads, system].map(str::to_owned);
                let found = if has_dax { &dax } else { &no_dax }.get(&place).copied();
                found.ok_or_else(|| format!("{} was not measured", place.join(" ")))
            };
            let ratio = |[over, under]: [_; 2]| Ok(format!("{:.2}", ns(over)? / ns(under)?));
            let row = RATIOS.into_iter().map(ratio).collect::<Result<Vec<String>, Failure>>()?;
            println!("| {} | {threads} | {printed} | {} |", operation.trim_end_matches("-threads"), row.join(" | "));
        }
    }
    Ok(())
}

fn measured(guest: &Guest, has_dax: bool, processor_count: u32, options: &[&str]) -> Result<Measured, Failure> {
    guest.empty()?;
    let words = ["hikv-figures", "ink", "8", "--dir", "/store", "--out", "/store"].iter().chain(options);
    let run: Vec<String> = words.map(|&word| word.to_owned()).collect();
    let region = Region::Ext4 { has_dax };
    let boot = Boot { region, variant: None, processor_count, run: &run, arguments: &[], append: "" };
    let mut measured = Measured::new();
    let objection = guest.attend(&boot, &mut |line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [workload, threads, system, ns, ..] = words[..]
            && let Ok(ns) = ns.parse()
        {
            measured.insert([workload, threads, system].map(str::to_owned), ns);
        }
    })?;
    objection.map_or(Ok(measured), Err)
}
