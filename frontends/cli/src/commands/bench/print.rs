//! Prints the results of a benchmark: one JSON object per line, or a table.

use std::io::{self, Write};

use bench::{Event, Row};
use indicatif::HumanBytes;
use pmem_os::MachineProbe;
use serde_json::json;

use crate::failure::print_error;
use crate::plural::s;

/// Prints the speed of the machine and its storage, which put the figures into context.
pub(super) fn machine(machine: &MachineProbe, as_json: bool) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let MachineProbe { dependent_read_ns: read, persist_256_ns: stream, persist_by_flush_256_ns: flush, .. } = machine;
    if as_json {
        let probe = json!({
            "dependent_read_ns": read,
            "persist_256_ns": stream,
            "persist_by_flush_256_ns": flush,
            "flush_instruction": machine.flush_instruction,
            "huge_page_bytes": machine.huge_page_bytes,
            "scratch_bytes": machine.scratch_bytes,
        });
        return writeln!(out, "{}", json!({ "probe": probe }));
    }
    let instruction = machine.flush_instruction;
    write!(
        out,
        "dependent read {read:.0} ns; persist of 256 bytes {stream:.0} ns past the cache, {flush:.0} ns by {instruction}; "
    )?;
    let (huge, scratch) = (HumanBytes(machine.huge_page_bytes), HumanBytes(machine.scratch_bytes));
    writeln!(out, "{huge} of {scratch} in huge pages")
}

/// Prints an event of the run.
pub(super) fn event(event: &Event, as_json: bool) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match event {
        Event::Loaded { records, elapsed } => {
            print_error(&format!("loaded {records} item{} in {elapsed:.2?}", s(*records)));
            if as_json { Ok(()) } else { writeln!(out, "{}", Row::HEADER) }
        }
        Event::Measured(row) if as_json => writeln!(out, "{}", serde_json::to_string(row)?),
        Event::Measured(row) => writeln!(out, "{row}"),
    }
}
