//! `cargo xtask vm cached N [SEED]`: power cuts of a guest that take what only the processor's cache had, on a device-DAX device.
//!
//! The processor's cache is modelled before the guest's NVDIMM ([`cache`](super::cache)): what was stored and not written back is
//! lost, unless the model has evicted that line, and what was written back without a fence arrives or does not. Cuts come before any
//! fence. All changes are batches of one thread.
//!
//! A life has many cuts. The last one ends it, and the next boot judges what is there by what was acknowledged; of each other one the model writes
//! what it would have left, and the same program judges that here, in memory.
//!
//! Before that two twins must lose: a store that writes nothing back, and one that commits a batch before its entries are durable.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, copy};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::cache::{By, Cache, Cut};
use super::guest::{Guest, NVDIMM_MODULES};
use super::life::{Ended, Lives};
use super::{lines_of, traced, work};
use crate::failure::Failure;

const TWINS: [&str; 2] = ["NothingFlushed", "BatchBeforeEntries"];
const TWIN_CUT_COUNT_MAX: u64 = 100;
const LIFE_CUT_COUNT_MAX: u64 = 20;
/// The model evicts a line at one store of so many.
const EVICTED_ONE_IN: u64 = 2;
/// Between two cuts: some batches.
const FENCE_COUNT_MAX: u64 = 40;
const NVDIMM_BYTES: u64 = 64 << 20;
/// With what a region begins.
const MAGIC: &[u8] = b"\x89hikv\r\n\x1a";

/// A store, and the model of the cache before it.
struct Rounds<'a> {
    guest: &'a Guest,
    cache: &'a Cache,
    judge: &'a Path,
    /// Where images are written, and where one is judged.
    image: PathBuf,
    judged: PathBuf,
    twin: &'a str,
    lives: Lives,
    random: u64,
}

/// Tries `count` cuts, after the twins.
pub(super) fn cached(count: u64, seed: u64) -> Result<(), Failure> {
    println!("seed {seed}");
    let work = work()?;
    let power_cut = traced::program(&work)?;
    let guest = Guest::make(&work, power_cut.clone(), &NVDIMM_MODULES)?;
    let cache = Cache::build(&work)?;
    let made = made(&guest, &work)?;
    let judged = Path::new("/dev/shm").join(format!("hikv-cached-{}", std::process::id()));
    let begin = |twin| {
        cache.take(&made)?;
        let (lives, image) = (Lives::new(1, seed), work.join("image"));
        let (guest, cache, judge, judged) = (&guest, &cache, power_cut.as_path(), judged.clone());
        Ok::<_, Failure>(Rounds { guest, cache, judge, image, judged, twin, lives, random: seed.max(1) })
    };
    let tried = TWINS.iter().try_for_each(|twin| catch(&mut begin(twin)?)).and_then(|()| hold(&mut begin("")?, count));
    _ = fs::remove_dir_all(&judged);
    tried
}

/// An NVDIMM that a guest has made a device-DAX device.
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
    let twin = rounds.twin;
    match rounds.cuts(TWIN_CUT_COUNT_MAX)? {
        Some(why) => println!("the twin {twin}: caught: {why}"),
        None => return Err(format!("the twin {twin} was not caught in {TWIN_CUT_COUNT_MAX} cuts: they show nothing")),
    }
    Ok(())
}

fn hold(rounds: &mut Rounds<'_>, count: u64) -> Result<(), Failure> {
    if let Some(why) = rounds.cuts(count)? {
        return Err(format!("seed {}: {why}", rounds.lives.seed));
    }
    if count > 0 && rounds.lives.total == 0 {
        return Err("no batch was acknowledged: these cuts show nothing".to_owned());
    }
    println!("{count} cuts, {} batches acknowledged, nothing lost", rounds.lives.total);
    Ok(())
}

impl Rounds<'_> {
    /// What is objected to, and after how many cuts.
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
        let cut = Cut::Images { count: cut_count, fences_max: FENCE_COUNT_MAX, file: &self.image };
        let model = self.cache.before(By::Processes, &self.guest.nvdimm(), self.random, EVICTED_ONE_IN, cut)?;
        let run = self.lives.arguments("power,power,batches").join(",");
        let words = format!("fs=devdax dax=old model=yes twin={} run={run}", self.twin);
        let qemu = self.guest.boot(&words, &[&self.guest.nvdimm_arguments()?[..], &model].concat())?;
        let (mut images, mut said) = (Vec::new(), Vec::new());
        let ended = self.lives.live(qemu, None, &mut |line, acknowledged| match line.strip_prefix("image ") {
            Some(number) => images.push((number.to_owned(), acknowledged[0])),
            None => said.extend(line.strip_prefix("said ").map(str::to_owned)),
        })?;
        if let Some(wrong) = said.iter().find(|said| *said != "devdax power") {
            return Err(format!("the store says {wrong}"));
        }
        if let Ended::Lost(why) = ended {
            return Ok(Some(format!("at the boot: {why}")));
        }
        for (number, acknowledged) in images {
            if let Some(why) = self.objection(&number, acknowledged)? {
                return Ok(Some(format!("at image {number}: {why}")));
            }
        }
        Ok(None)
    }

    /// What is wrong with an image, after so many batches were acknowledged.
    fn objection(&self, number: &str, acknowledged: u64) -> Result<Option<String>, Failure> {
        let image = PathBuf::from(format!("{}.{number}", self.image.display()));
        if !self.lay_out(&image).map_err(|error| format!("{}: {error}", image.display()))? {
            return Ok((acknowledged > 0).then(|| "there is no store".to_owned()));
        }
        let mut judge = Command::new(self.judge);
        judge.arg(&self.judged).args(["process", "power", "batches"]).arg(self.lives.seed.to_string());
        judge.arg(acknowledged.to_string()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut judge = judge.spawn().map_err(|error| error.to_string())?;
        let lines = BufReader::new(judge.stdout.take().expect("it is piped")).lines().map_while(Result::ok);
        let verdict = lines.into_iter().find(|line| line.starts_with("judged") || line.starts_with("lost"));
        _ = judge.kill();
        _ = judge.wait();
        let verdict = verdict.ok_or("the judge says nothing")?;
        Ok(verdict.starts_with("lost").then_some(verdict))
    }

    /// Puts the region of an image where a store in a directory has its own; false if there is none yet.
    fn lay_out(&self, image: &Path) -> std::io::Result<bool> {
        _ = fs::remove_dir_all(&self.judged);
        let bytes = fs::read(image)?;
        fs::remove_file(image)?;
        let Some(start) = bytes.chunks(4096).position(|page| page.starts_with(MAGIC)) else { return Ok(false) };
        fs::create_dir_all(&self.judged)?;
        copy(&mut &bytes[start * 4096..], &mut File::create(self.judged.join("store.hikv"))?)?;
        Ok(true)
    }
}
