//! Counts the instructions of each store operation, and among them write-backs, stores past the cache, fences and
//! locked instructions.
//!
//! A program cannot count its own instructions in a virtual machine that hides the counters, and valgrind may not
//! support the instructions that write lines back. So the program runs itself under `ptrace` and single-steps a
//! measured loop. Only the calling thread is counted; background threads run freely alongside it.
//!
//! The count of a loop without a store is subtracted, so that the table shows only the library's public functions. It
//! shows the median operation, because one split weighs more than a hundred inserts; the column `mean` covers all of
//! them.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for the terminal")]

mod failure;
mod kinds;
mod operation;
mod profile;
mod symbols;
mod table;
mod tracer;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use hikv::{EngineKind, Options};

use crate::failure::Failure;
use crate::kinds::Executed;
use crate::operation::{Loop, Operation, Order};
use crate::profile::Profile;
use crate::symbols::Mappings;
use crate::table::Table;

/// Count the instructions of each store operation by single-stepping.
#[derive(Parser)]
struct Arguments {
    /// Directory for the stores, on a memory file system.
    #[arg(long, default_value = "/dev/shm")]
    dir: PathBuf,
    /// Records loaded before counting.
    #[arg(long, default_value_t = 100_000)]
    records: u64,
    /// Operations counted of each kind.
    #[arg(long, default_value_t = 96)]
    operations: u64,
    /// File with the table of counts.
    #[arg(long, default_value = "docs/budgets.md")]
    table: PathBuf,
    /// Fail if a count differs from the table's by more than 10 %.
    #[arg(long, conflicts_with = "write")]
    check: bool,
    /// Write the counts into the table.
    #[arg(long)]
    write: bool,
    /// Show the instructions of this operation by function.
    #[arg(long, conflicts_with_all = ["check", "write"])]
    profile: Option<Operation>,
    /// With `--profile`: also show them one by one.
    #[arg(long, requires = "profile")]
    trace: bool,
    /// With `--profile`: the kind of store.
    #[arg(long, default_value = "hash")]
    order: Order,
    /// The stores' engine; the table is for hikv.
    #[arg(long, default_value_t, conflicts_with_all = ["check", "write"])]
    engine: EngineKind,
    /// Value length in bytes; the table uses the default.
    #[arg(long, default_value_t = 256, conflicts_with_all = ["check", "write"], value_parser = clap::value_parser!(u64).range(8..))]
    value_bytes: u64,
    /// Size of the read cache; the table's stores have none.
    #[arg(long, default_value_t = 0, conflicts_with_all = ["check", "write"])]
    read_cache: u64,
    /// Run one loop, in the single-stepped program.
    #[arg(long, hide = true)]
    traced: Option<Operation>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome = match (arguments.traced, arguments.profile) {
        (Some(operation), _) => arguments.measured_loop().run(operation),
        (None, Some(operation)) => arguments.show_profile(operation),
        (None, None) => arguments.count_all(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("budgets: {failure}");
            ExitCode::FAILURE
        }
    }
}

impl Arguments {
    fn measured_loop(&self) -> Loop {
        Loop {
            dir: self.dir.clone(),
            records: self.records,
            operations: self.operations,
            options: Options::new()
                .engine(self.engine)
                .read_cache_bytes(self.read_cache)
                .emulation(|memory| memory.non_temporal(true))
                .ordered(self.order == Order::Ordered || self.has_order()),
            order: self.order,
            value_bytes: self.value_bytes as usize,
        }
    }

    /// Returns true if every store of the engine is ordered.
    fn has_order(&self) -> bool {
        matches!(self.engine, EngineKind::Ink | EngineKind::Pmekv)
    }

    fn count_all(&self) -> Result<(), Failure> {
        let mut table = Table::default();
        // Some of the other engines have no order, and some are always ordered.
        let is_of = |order: &Order| self.engine == EngineKind::HiKv || *order == Order::Hash;
        for order in Order::ALL.into_iter().filter(is_of) {
            let (idle, _) = self.count(Operation::Nothing, order)?;
            let own = table::median(&idle.operations, |counts| counts.instructions);
            println!("{}: {own:.0} instructions of the loop itself, which are subtracted", order.name());
            let is_there = |it: &Operation| !it.needs_order() || order == Order::Ordered || self.has_order();
            for operation in Operation::COUNTED.into_iter().filter(is_there) {
                let (counted, _) = self.count(operation, order)?;
                table.add(order, operation, counted.operations, &idle.operations);
            }
        }
        println!("{table}");
        match () {
            () if self.write => table.write(&self.table),
            () if self.check => table.check(&self.table),
            () => Ok(()),
        }
    }

    fn show_profile(&self, operation: Operation) -> Result<(), Failure> {
        let (executed, mappings) = self.count(operation, self.order)?;
        let profile = Profile::of_middle(executed, &mappings)?;
        if self.trace {
            print!("{}", profile.trace());
        }
        print!("{profile}");
        Ok(())
    }

    fn count(&self, operation: Operation, order: Order) -> Result<(Executed, Mappings), Failure> {
        let mut program = std::process::Command::new(std::env::current_exe()?);
        program.arg("--dir").arg(&self.dir).args(["--traced", operation.name(), "--order", order.name()]);
        program.args(["--engine", self.engine.name(), "--read-cache", &self.read_cache.to_string()]);
        program.args(["--value-bytes", &self.value_bytes.to_string()]);
        program.args(["--records", &self.records.to_string(), "--operations", &self.operations.to_string()]);
        tracer::count_between_marks(program).map_err(|failure| format!("{}: {failure}", operation.name()).into())
    }
}
