//! Runs the workloads on the store of a benchmark, or on a variant.

use std::ops::ControlFlow;
use std::path::Path;

use bench::{Bounds, Config, Event, Subject, Workload, refuse_unfit};

use super::variant::Measure;
use super::{Bench, print};
use crate::failure::{Failure, print_error, with_sources};
use crate::interrupt::Interrupt;

/// The workloads that run on one store.
pub(super) struct OfWorkloads<'a> {
    pub(super) bench: &'a Bench,
    pub(super) workloads: &'a [Workload],
    pub(super) interrupt: &'a Interrupt,
    pub(super) home: &'a Path,
    /// True for the first store: its storage is probed.
    pub(super) is_first: bool,
    /// True if the storage is memory, whose bounds can be measured.
    pub(super) is_memory: bool,
}

impl OfWorkloads<'_> {
    /// Measures the machine's bounds for these workloads.
    fn bounds(&self, config: &Config) -> Bounds {
        if !self.is_memory {
            return Bounds::default();
        }
        let stop = || self.interrupt.signal().is_some();
        Bounds::measure(self.home, config, self.bench.latencies.latency(), &stop).unwrap_or_else(|error| {
            print_error(&format!("cannot measure the bounds of the machine: {error}"));
            Bounds::default()
        })
    }

    fn probe(&self) -> Result<(), Failure> {
        if self.is_first {
            let machine = pmem_os::probe(self.home).map_err(Failure::at_path(&self.bench.dir))?;
            print::machine(&machine, self.bench.json).map_err(Failure::output("standard output"))?;
        }
        Ok(())
    }
}

impl Measure for OfWorkloads<'_> {
    /// Runs all workloads; returns the number of wrong results.
    fn measure(self, subject: &impl Subject) -> Result<u64, Failure> {
        let OfWorkloads { bench, workloads, interrupt, .. } = self;
        refuse_unfit(subject, &bench.workloads).map_err(|error| Failure::Error(error.to_string()))?;
        self.probe()?;
        let config = bench.config(workloads);
        let bounds = self.bounds(&config);
        let mut errors = 0;
        let mut printed = Ok(());
        bench::run(subject, &config, &bounds, &|| interrupt.signal().is_some(), |event| {
            if let Event::Measured(row) = &event {
                errors += row.errors;
            }
            printed = print::event(&event, bench.json);
            if printed.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })
        .map_err(|error| Failure::at(bench.dir.display(), with_sources(&*error)))?;
        printed.map(|()| errors).map_err(Failure::output("standard output"))
    }
}
