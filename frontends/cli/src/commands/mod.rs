//! The commands, one per file.

mod backup;
mod batch;
mod bench;
mod cas;
mod check;
mod compact;
mod del;
mod device;
mod dump;
mod expire;
mod get;
mod incr;
mod listing;
mod load;
mod missing;
mod nvme;
mod order;
mod pages;
mod put;
mod repair;
mod scan;
mod serve;
mod stats;
mod trees;
mod ttl;

use clap::Subcommand;

use crate::failure::Failure;

/// A command.
#[derive(Subcommand)]
pub(crate) enum Command {
    Put(put::Put),
    Get(get::Get),
    Del(del::Del),
    Cas(cas::Cas),
    Batch(batch::Batch),
    Incr(incr::Incr),
    Expire(expire::Expire),
    Ttl(ttl::Ttl),
    Persist(expire::Persist),
    Load(load::Load),
    Dump(dump::Dump),
    Scan(scan::Scan),
    Trees(trees::Trees),
    Check(check::Check),
    Compact(compact::Compact),
    Backup(backup::Backup),
    Restore(backup::Restore),
    Convert(backup::Convert),
    Repair(repair::Repair),
    Stats(stats::Stats),
    Bench(bench::Bench),
    Serve(Box<serve::Serve>),
    Device(Box<device::Device>),
    Nvme(nvme::Nvme),
    Completions(pages::Completions),
    Man(pages::Man),
}

impl Command {
    /// Runs the command.
    pub(crate) fn run(self) -> Result<(), Failure> {
        match self {
            Command::Put(put) => put.run(),
            Command::Get(get) => get.run(),
            Command::Del(del) => del.run(),
            Command::Cas(cas) => cas.run(),
            Command::Batch(batch) => batch.run(),
            Command::Incr(incr) => incr.run(),
            Command::Expire(expire) => expire.run(),
            Command::Ttl(ttl) => ttl.run(),
            Command::Persist(persist) => persist.run(),
            Command::Load(load) => load.run(),
            Command::Dump(dump) => dump.run(),
            Command::Scan(scan) => scan.run(),
            Command::Trees(trees) => trees.run(),
            Command::Check(check) => check.run(),
            Command::Compact(compact) => compact.run(),
            Command::Backup(backup) => backup.run(),
            Command::Restore(restore) => restore.run(),
            Command::Convert(convert) => convert.run(),
            Command::Repair(repair) => repair.run(),
            Command::Stats(stats) => stats.run(),
            Command::Bench(bench) => bench.run(),
            Command::Serve(serve) => serve.run(),
            Command::Device(device) => device.run(),
            Command::Nvme(nvme) => nvme.run(),
            Command::Completions(completions) => completions.run(),
            Command::Man(man) => man.run(),
        }
    }

    /// Returns true if the command does not install a log itself.
    pub(crate) fn has_no_log(&self) -> bool {
        !matches!(self, Command::Serve(_))
    }
}
