//! `cargo xtask kernel rounds N [SEED]`: power cuts of the module, round after round on one store.
//!
//! The processor's cache is modelled (`kernel/ink/plugin`): of what was stored and not written back a cut takes what the model has not
//! evicted. Before the rounds three broken twins of the module must lose data, each another step left out: a rig that does not
//! notice that would notice no loss of ours.

use std::path::Path;
use std::time::SystemTime;

use super::guest::{Boot, Guest, Region, THREAD_COUNT};
use crate::failure::Failure;
use crate::vm::cache::{By, Cache, Cut};
use crate::vm::life::{Ended, Lives};

const NVDIMM_BYTES: u64 = 64 << 20;
/// A round is cut before so many stores to the region: some hundred changes, or in the middle of the opening.
const STORE_COUNT_MAX: u64 = 30_000;
/// A twin that is not caught in so many rounds is not seen.
const TWIN_ROUND_COUNT_MAX: u64 = 12;
/// The model evicts a line at one store of so many.
const EVICTED_ONE_IN: u64 = 50;
const TWINS: [&str; 3] = ["NothingFlushed", "DeleteNotFlushed", "NodeNotFlushed"];

/// A store, and the model of the cache before it.
struct Rounds<'a> {
    guest: &'a Guest,
    lives: Lives,
    cache: &'a Cache,
    random: u64,
    twin: Option<&'a str>,
}

/// Runs `count` rounds, after the twins.
pub(super) fn rounds(work: &Path, count: u64, seed: Option<u64>) -> Result<(), Failure> {
    let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(1, |now| now.as_secs());
    let seed = seed.unwrap_or_else(now);
    println!("seed {seed}");
    let cache = Cache::build(work)?;
    let guest = Guest::make(work, NVDIMM_BYTES, true)?;
    for twin in TWINS {
        catch(&guest, &cache, twin, seed)?;
    }
    let mut rounds = Rounds::begin(&guest, &cache, None, seed)?;
    for round in 1..=count {
        if let Ended::Lost(why) = rounds.round()? {
            return Err(format!("seed {seed}, round {round}: {why}"));
        }
        println!(
            "round {round}: {} changes acknowledged so far, {} begun ones taken back at an opening",
            rounds.lives.total, rounds.lives.undone
        );
    }
    if count > 0 && rounds.lives.total == 0 {
        return Err("no change was acknowledged: these rounds show nothing".to_owned());
    }
    println!("{count} cuts, {} acknowledged changes, nothing lost", rounds.lives.total);
    Ok(())
}

fn catch(guest: &Guest, cache: &Cache, twin: &str, seed: u64) -> Result<(), Failure> {
    let mut rounds = Rounds::begin(guest, cache, Some(twin), seed)?;
    for round in 1..=TWIN_ROUND_COUNT_MAX {
        if let Ended::Lost(why) = rounds.round()? {
            println!("the twin {twin}: caught in round {round}: {why}");
            return Ok(());
        }
    }
    Err(format!("the twin {twin} was not caught: what these rounds see is not to be relied on"))
}

impl<'a> Rounds<'a> {
    fn begin(guest: &'a Guest, cache: &'a Cache, twin: Option<&'a str>, seed: u64) -> Result<Rounds<'a>, Failure> {
        cache.empty(NVDIMM_BYTES)?;
        Ok(Rounds { guest, lives: Lives::new(THREAD_COUNT, seed), cache, random: seed.max(1), twin })
    }

    /// Xorshift.
    fn random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    /// Boots on what is durable; the model cuts.
    fn round(&mut self) -> Result<Ended, Failure> {
        let (cut, seed) = (Cut::Stores(1 + self.random() % STORE_COUNT_MAX), self.random());
        let arguments = self.cache.before(By::Kernel, &self.guest.nvdimm, seed, EVICTED_ONE_IN, cut)?;
        let run = self.lives.arguments("ink_cut");
        let boot = Boot {
            region: Region::Raw,
            twin: self.twin,
            processor_count: 1,
            run: &run,
            arguments: &arguments,
            append: "",
        };
        self.lives.live(self.guest.boot(&boot)?, None, &mut |_, _| {})
    }
}
