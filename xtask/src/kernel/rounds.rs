//! `cargo xtask kernel rounds N [SEED]`: power cuts of the module, round after round on one store.
//!
//! A model of the processor's cache (`kernel/ink/plugin`) loses stored lines that were not written back, unless the
//! model has evicted them. A cut comes before any store to the region, or before any fence that lines wait for.
//!
//! A life has several cuts, because a boot takes far longer than an opening. The last cut ends the life, and the
//! module checks the store at the next boot. For each other cut the model writes an image, which the library opens
//! and checks on the host.
//!
//! Half of the cuts use a store with the usual node size. The other half use nodes of seven pairs, so that splits and
//! merges are frequent and cuts interrupt them.
//!
//! Before the rounds, four broken variants of the module, each without another step, must lose data: a test rig that
//! misses them would miss a loss of hikv's. One variant breaks only merges, so it loses data only if a cut interrupts
//! one.

use std::path::Path;
use std::time::SystemTime;

use super::guest::{self, Boot, Guest, Kind, Region, THREAD_COUNT};
use crate::failure::Failure;
use crate::vm::cache::{By, Cache, Cuts};
use crate::vm::judge::Judge;
use crate::vm::life::{Ended, Image, Lives};

const NVDIMM_BYTES: u64 = 64 << 20;
/// Stores and fences between two cuts: about ten changes. In one life of three: parts of the opening and of a change.
const FAR: [u64; 2] = [4000, 100];
const CLOSE: [u64; 2] = [60, 4];
/// Only before fences: data of an unfinished merge is lost between two of them, and few changes are merges.
const AT_FENCES: [u64; 2] = [0, 100];
const LIFE_CUT_COUNT_MAX: u64 = 10;
/// A broken variant that is not caught in this many cuts counts as missed.
const VARIANT_CUT_COUNT_MAX: u64 = 120;
const MERGE_VARIANT_CUT_COUNT_MAX: u64 = 400;
/// The model evicts a line at one store in this many.
const EVICTED_ONE_IN: u64 = 50;
/// Replaces an image's number for the last cut.
const LAST: &str = "last";
/// The usual node size: the module's default.
const COMMON: &str = "";
const SMALL: &str = "order=7";
const VARIANTS: [(&str, &str, u64); 4] = [
    ("NothingFlushed", COMMON, VARIANT_CUT_COUNT_MAX),
    ("DeleteNotFlushed", COMMON, VARIANT_CUT_COUNT_MAX),
    ("NodeNotFlushed", COMMON, VARIANT_CUT_COUNT_MAX),
    ("MergeHalfLogged", SMALL, MERGE_VARIANT_CUT_COUNT_MAX),
];

/// A store, and the model of the cache in front of it.
struct Rounds<'a> {
    guest: &'a Guest,
    lives: Lives,
    cache: &'a Cache,
    judge: &'a Judge<'a>,
    random: u64,
    variant: Option<&'a str>,
    /// Node size of a new store, as a parameter of the module.
    order: &'a str,
    counts: Counts,
}

#[derive(Default)]
struct Counts {
    cuts: u64,
    /// Cuts before the module had opened the store.
    cuts_of_openings: u64,
    /// Cuts that the module itself checked.
    boots: u64,
}

/// Runs `count` rounds, after the broken variants.
pub(super) fn rounds(work: &Path, count: u64, seed: Option<u64>) -> Result<(), Failure> {
    let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(1, |now| now.as_secs());
    let seed = seed.unwrap_or_else(now);
    println!("seed {seed}");
    let cache = Cache::build(work)?;
    let guest = Guest::make(work, NVDIMM_BYTES, Kind { is_traced: true, ..Kind::default() }, &guest::programs()?)?;
    let program = guest::judge()?;
    let judge = Judge::new(work, &program, &[])?;
    for (variant, order, cut_count_max) in VARIANTS {
        let mut rounds = Rounds::begin(&guest, &cache, &judge, (Some(variant), order), seed)?;
        match rounds.cuts(cut_count_max)? {
            Some(why) => println!("broken variant {variant}: caught: {why}"),
            None => {
                return Err(format!("broken variant {variant} was not caught, so the rounds prove nothing"));
            }
        }
    }
    for (order, count) in [(COMMON, count - count / 2), (SMALL, count / 2)] {
        let mut rounds = Rounds::begin(&guest, &cache, &judge, (None, order), seed)?;
        if let Some(why) = rounds.cuts(count)? {
            return Err(format!("seed {seed}: {why}"));
        }
        if count > 0 && rounds.lives.total == 0 {
            return Err("no change was acknowledged, so the rounds prove nothing".to_owned());
        }
        println!("{}, nothing lost", rounds.describe());
    }
    Ok(())
}

impl<'a> Rounds<'a> {
    fn begin(
        guest: &'a Guest,
        cache: &'a Cache,
        judge: &'a Judge<'a>,
        (variant, order): (Option<&'a str>, &'a str),
        seed: u64,
    ) -> Result<Rounds<'a>, Failure> {
        cache.empty(NVDIMM_BYTES)?;
        let (lives, random, counts) = (Lives::new(THREAD_COUNT, seed), seed.max(1), Counts::default());
        Ok(Rounds { guest, lives, cache, judge, random, variant, order, counts })
    }

    /// Runs `count` cuts; returns the first objection and its cut.
    fn cuts(&mut self, count: u64) -> Result<Option<String>, Failure> {
        while self.counts.cuts < count {
            let cut_count = LIFE_CUT_COUNT_MAX.min(count - self.counts.cuts);
            let first = self.counts.cuts + 1;
            if let Some(why) = self.life(cut_count)? {
                return Ok(Some(format!("of cuts {first} to {}: {why}", self.counts.cuts)));
            }
            if self.variant.is_none() {
                println!("{}", self.describe());
            }
        }
        Ok(None)
    }

    fn describe(&self) -> String {
        let Counts { cuts, cuts_of_openings, boots } = self.counts;
        let Lives { total, undone, merged, .. } = self.lives;
        format!(
            "{}: {cuts} cuts in {boots} boots, {cuts_of_openings} during openings; {total} changes acknowledged, {undone} unfinished ones undone, {merged} nodes merged",
            if self.order.is_empty() { "usual node size" } else { self.order }
        )
    }

    /// Boots from the durable contents; the model cuts the power.
    fn life(&mut self, cut_count: u64) -> Result<Option<String>, Failure> {
        // Xorshift.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let image = self.judge.image();
        let [stores_max, fences_max] = match self.variant {
            Some(_) if self.order == SMALL => AT_FENCES,
            _ if self.random.is_multiple_of(3) => CLOSE,
            _ => FAR,
        };
        let cuts = Cuts { count: cut_count, stores_max, fences_max, image: &image };
        let arguments = self.cache.before(By::Kernel, &self.guest.nvdimm, self.random, EVICTED_ONE_IN, cuts)?;
        let run = self.lives.arguments("ink_cut");
        let boot = Boot {
            region: Region::Raw,
            variant: self.variant,
            processor_count: 1,
            run: &run,
            arguments: &arguments,
            append: self.order,
        };
        let ended = self.lives.live(self.guest.boot(&boot)?, None, &mut |_| {})?;
        self.counts.cuts += cut_count;
        self.counts.boots += 1;
        self.counts.cuts_of_openings += self.lives.images.iter().filter(|image| !image.is_open).count() as u64;
        if let Ended::Lost(why) = ended {
            return Ok(Some(format!("at the boot: {why}")));
        }
        // The image of the last cut is checked here as well, because no boot follows the last life.
        self.cache.leave(&image.with_extension(LAST))?;
        let acknowledged = self.lives.acknowledged.clone();
        self.lives.images.push(Image { number: LAST.to_owned(), acknowledged, is_open: true });
        self.judge.objection(&self.lives)
    }
}
