//! `hikv check`.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use hikv::{EngineKind, Error, Options, Order, Report, Store, VerifyProgress};

use super::order::put_in_order;
use crate::failure::{Failure, unless_closed};
use crate::interrupt::Interrupt;
use crate::memory::Memory;
use crate::opening;
use crate::plural::s;
use crate::progress::Progress;

/// Report damage: headers and references, or everything with --deep
///
/// Changes nothing. The exit code is 1 if there is damage. `repair` salvages the undamaged items, or `convert
/// --skip-damaged` if the engine has no repair.
#[derive(Args)]
pub(crate) struct Check {
    /// The store: a directory or a DAX device
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Also read every key and value, look up each key, and compare the key order, if there is one, with the hash index
    #[arg(long)]
    deep: bool,
    /// Seconds between progress lines if stderr is not a terminal
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    progress_every: u64,
    #[command(flatten)]
    memory: Memory,
}

impl Check {
    pub(super) fn run(self) -> Result<(), Failure> {
        let store = opening::open(&self.memory.options(Options::new().read_only(true)), &self.dir)?;
        let interrupt = Interrupt::install()?;
        let report = self.verify(&store, &interrupt).map_err(Failure::at_path(&self.dir))?;
        let found = report.damage.len() as u64;
        interrupt.check(|| {
            let items = report.items;
            format!("checked {items} item{}, and found {found} damaged place{}", s(items), s(found))
        })?;
        unless_closed(write_report(&report)).map_err(Failure::output("standard output"))?;
        match report.damage.len() {
            0 => Ok(()),
            places => {
                let s = s(places as u64);
                let remedy = match store.engine_kind() {
                    EngineKind::HiKv => "repair",
                    _ => "convert --skip-damaged",
                };
                let dir = self.dir.display();
                Err(Failure::Negative(format!(
                    "{dir}: damaged in {places} place{s}; `hikv {remedy}` salvages the undamaged items into a new store"
                )))
            }
        }
    }

    fn verify(&self, store: &Store, interrupt: &Interrupt) -> Result<Report, Error> {
        let every = Duration::from_secs(self.progress_every);
        let mut progress = None;
        let show = |at: VerifyProgress| {
            progress
                .get_or_insert_with(|| Progress::new("checked", Some(at.items_total), every))
                .set(at.items, at.items);
            interrupt.flow()
        };
        let report = if self.deep { store.verify(show)? } else { hikv::FrontEnd::of(store).verify_headers(show)? };
        if let Some(progress) = progress.filter(|_| interrupt.signal().is_none()) {
            progress.finish();
        }
        if interrupt.signal().is_some()
            || !self.deep
            || !report.damage.is_empty()
            || store.features().order == Order::No
        {
            return Ok(report);
        }
        // A damaged store cannot build a key order.
        let damage = put_in_order(store, every)?.verify()?.damage;
        Ok(Report { damage, ..report })
    }
}

fn write_report(report: &Report) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for damage in &report.damage {
        writeln!(out, "damage at offset {:#x}: {}", damage.offset, damage.what)?;
    }
    if report.damage.is_empty() {
        writeln!(out, "{} item{}, no damage", report.items, s(report.items))?;
    }
    out.flush()
}
