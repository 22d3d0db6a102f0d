//! `cargo xtask vm cached N [SEED]`: power cuts of a guest that lose the contents of the processor's cache, on
//! device-DAX.
//!
//! A model of the processor's cache is in front of the guest's NVDIMM ([`cache`](super::cache)). A line that was
//! stored and not written back is lost, unless the model has evicted it. A line that was written back without a fence
//! arrives or does not. Cuts come before any fence. All changes are batches of one thread.
//!
//! A life has many cuts. The last one ends it, and the next boot compares the store with the acknowledged changes.
//! For each other cut the model writes an image of the store, which the same program checks here, in memory.
//!
//! Before that, two broken variants must lose data: a store that writes nothing back, and one that commits a batch
//! before its entries are durable.

use std::fs;
use std::path::{Path, PathBuf};

use super::cache::{By, Cache, Cuts};
use super::guest::{Guest, NVDIMM_MODULES};
use super::judge::Judge;
use super::life::{Ended, Lives};
use super::{lines_of, traced, work};
use crate::failure::Failure;

const VARIANTS: [&str; 2] = ["NothingFlushed", "BatchBeforeEntries"];
const VARIANT_CUT_COUNT_MAX: u64 = 100;
const LIFE_CUT_COUNT_MAX: u64 = 20;
/// The model evicts a line at one store in this many.
const EVICTED_ONE_IN: u64 = 2;
/// Fences between two cuts: a few batches.
const FENCE_COUNT_MAX: u64 = 40;
const NVDIMM_BYTES: u64 = 64 << 20;

/// A store, and the model of the cache in front of it.
struct Rounds<'a> {
    guest: &'a Guest,
    cache: &'a Cache,
    judge: &'a Judge<'a>,
    variant: &'a str,
    lives: Lives,
    random: u64,
}

/// Runs `count` cuts, after the broken variants.
pub(super) fn cached(count: u64, seed: u64) -> Result<(), Failure> {
    println!("seed {seed}");
    let work = work()?;
    let power_cut = traced::program(&work)?;
    let guest = Guest::make(&work, power_cut.clone(), &NVDIMM_MODULES)?;
    let cache = Cache::build(&work)?;
    let made = made(&guest, &work)?;
    let judge = Judge::new(&work, &power_cut, &["process", "power", "batches"])?;
    let begin = |variant| {
        cache.take(&made)?;
        let (guest, cache, judge) = (&guest, &cache, &judge);
        Ok::<_, Failure>(Rounds { guest, cache, judge, variant, lives: Lives::new(1, seed), random: seed.max(1) })
    };
    VARIANTS.iter().try_for_each(|variant| catch(&mut begin(variant)?)).and_then(|()| hold(&mut begin("")?, count))
}

/// Makes an NVDIMM that a guest has configured as device-DAX.
fn made(guest: &Guest, work: &Path) -> Result<PathBuf, Failure> {
    guest.empty_nvdimm(NVDIMM_BYTES)?;
    let mut qemu = guest.boot("fs=devdax dax=new", &guest.nvdimm_arguments()?)?;
    lines_of(&mut qemu).iter().for_each(drop);
    qemu.wait().map_err(|error| error.to_string())?;
    let made = work.join("devdax");
    fs::rename(guest.nvdimm(), &made).map_err(|error| format!("{}: {error}", made.display()))?;
    Ok(made)
}

fn catch(rounds: &mut Rounds<'_>) -> Result<(), Failure> {
    let variant = rounds.variant;
    match rounds.cuts(VARIANT_CUT_COUNT_MAX)? {
        Some(why) => println!("broken variant {variant}: caught: {why}"),
        None => {
            return Err(format!(
                "broken variant {variant} was not caught in {VARIANT_CUT_COUNT_MAX} cuts, so the cuts prove nothing"
            ));
        }
    }
    Ok(())
}

fn hold(rounds: &mut Rounds<'_>, count: u64) -> Result<(), Failure> {
    if let Some(why) = rounds.cuts(count)? {
        return Err(format!("seed {}: {why}", rounds.lives.seed));
    }
    if count > 0 && rounds.lives.total == 0 {
        return Err("no batch was acknowledged, so these cuts prove nothing".to_owned());
    }
    println!("{count} cuts, {} batches acknowledged, nothing lost", rounds.lives.total);
    Ok(())
}

impl Rounds<'_> {
    /// Runs `count` cuts; returns the first objection and its cut.
    fn cuts(&mut self, count: u64) -> Result<Option<String>, Failure> {
        let mut done = 0;
        while done < count {
            let cuts = LIFE_CUT_COUNT_MAX.min(count - done);
            if let Some(why) = self.life(cuts)? {
                return Ok(Some(format!("of cuts {} to {}: {why}", done + 1, done + cuts)));
            }
            done += cuts;
        }
        Ok(None)
    }

    fn life(&mut self, cut_count: u64) -> Result<Option<String>, Failure> {
        // Xorshift.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let image = self.judge.image();
        let cuts = Cuts { count: cut_count, stores_max: 0, fences_max: FENCE_COUNT_MAX, image: &image };
        let model = self.cache.before(By::Processes, &self.guest.nvdimm(), self.random, EVICTED_ONE_IN, cuts)?;
        let run = self.lives.arguments("power,power,batches").join(",");
        let words = format!("fs=devdax dax=old model=yes variant={} run={run}", self.variant);
        let qemu = self.guest.boot(&words, &[&self.guest.nvdimm_arguments()?[..], &model].concat())?;
        let mut said = Vec::new();
        let ended = self.lives.live(qemu, None, &mut |line| {
            said.extend(line.strip_prefix("said ").map(str::to_owned));
        })?;
        if let Some(wrong) = said.iter().find(|said| *said != "devdax power") {
            return Err(format!("the store reports {wrong}"));
        }
        if let Ended::Lost(why) = ended {
            return Ok(Some(format!("at the boot: {why}")));
        }
        self.judge.objection(&self.lives)
    }
}
