//! What is done with the store of a benchmark, whichever subject it is.

use std::ops::ControlFlow;
use std::path::Path;

use bench::{Bounds, Config, Event, Subject, Workload, refuse_unfit};

use super::variant::Measure;
use super::{Bench, print};
use crate::failure::{Failure, complain};
use crate::interrupt::Interrupt;

/// The workloads of one store.
pub(super) struct OfWorkloads<'a> {
    pub(super) bench: &'a Bench,
    pub(super) workloads: &'a [Workload],
    pub(super) interrupt: &'a Interrupt,
    pub(super) home: &'a Path,
    /// The first store's place is probed.
    pub(super) is_first: bool,
    /// Its medium is memory, whose bounds can be measured.
    pub(super) is_memory: bool,
}

impl OfWorkloads<'_> {
    /// What the machine allows, for these workloads.
    fn bounds(&self, config: &Config) -> Bounds {
        if !self.is_memory {
            return Bounds::default();
        }
        let stop = || self.interrupt.signal().is_some();
        Bounds::measure(self.home, config, self.bench.latencies.latency(), &stop).unwrap_or_else(|error| {
            complain(&format!("no bounds of the machine: {error}"));
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
    /// Runs them all; how many results were wrong.
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
        .map_err(Failure::at_path(&bench.dir))?;
        printed.map(|()| errors).map_err(Failure::output("standard output"))
    }
}
