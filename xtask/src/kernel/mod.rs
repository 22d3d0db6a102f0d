//! `cargo xtask kernel`: InK as a module of the Linux kernel (`kernel/ink`, docs/kernel.md).
//!
//! - `build [VERSION]` builds the module for the kernel whose headers are installed.
//! - `check` builds as much as this machine allows and lists the rest.
//! - `run` shows the module in a guest.
//! - `rounds COUNT [SEED]` cuts the power of a guest.
//! - `hostile --minutes COUNT [SEED]` runs hostile processes in a guest; `hostile variants [SEED]` only against broken
//!   variants of the module. `kasan` instead of `hostile` uses a kernel with KASAN and lockdep, which is built first,
//!   once.
//! - `merges [kasan]` deletes most keys and cuts the power while nodes merge.
//! - `speed [COUNT]` compares the module's calls with the library's.
//! - `figure8 [PROCESSORS] [OPTIONS]` measures figure 8 of InK's paper in a guest, on a file system with and without
//!   DAX.

mod figure8;
mod guest;
mod hostile;
mod kasan;
mod merges;
mod module;
mod object;
mod rounds;
mod show;
mod speed;
mod toolchain;

use std::path::PathBuf;

use crate::failure::Failure;
use guest::Kind;

/// Measured operations of each kind.
const SPEED_COUNT: u64 = 5000;
const USAGE: &str = "usage: cargo xtask kernel build [VERSION] | check | run | rounds COUNT [SEED] | hostile|kasan (--minutes COUNT | variants) [SEED] | merges [kasan] | speed [COUNT] | figure8 [PROCESSORS] [OPTIONS OF FIGURES]";

/// Runs the command given by `words`.
pub(crate) fn command(words: &[&str]) -> Result<(), Failure> {
    let number = |word: &str| word.parse::<u64>().map_err(|_| USAGE.to_owned());
    let seed = |words: &[&str]| words.first().map(|word| number(word)).transpose();
    match *words {
        ["build", ref version @ ..] if version.len() < 2 => build(version.first().copied()),
        ["check"] => check(),
        ["run"] => show::show(&work()?),
        ["rounds", count, ref rest @ ..] if rest.len() < 2 => rounds::rounds(&work()?, number(count)?, seed(rest)?),
        [kernel @ ("hostile" | "kasan"), "--minutes", minutes, ref rest @ ..] if rest.len() < 2 => {
            hostile::hostile(&work()?, kernel == "kasan", number(minutes)?, seed(rest)?.unwrap_or(1))
        }
        [kernel @ ("hostile" | "kasan"), "variants", ref rest @ ..] if rest.len() < 2 => {
            hostile::variants(&work()?, kernel == "kasan", seed(rest)?.unwrap_or(1))
        }
        ["merges"] => merges::merges(&work()?, false),
        ["merges", "kasan"] => merges::merges(&work()?, true),
        ["figure8", processors, ref options @ ..] if !processors.starts_with('-') => {
            figure8::figure8(&work()?, Some(number(processors)?), options)
        }
        ["figure8", ref options @ ..] => figure8::figure8(&work()?, None, options),
        ["speed"] => speed::speed(&work()?, SPEED_COUNT),
        ["speed", count] => speed::speed(&work()?, number(count)?),
        _ => Err(USAGE.to_owned()),
    }
}

/// Returns the working directory.
fn work() -> Result<PathBuf, Failure> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let work = program.ancestors().nth(2).ok_or("the program lies in no target directory")?.join("kernel");
    std::fs::create_dir_all(&work).map_err(|error| format!("{}: {error}", work.display()))?;
    Ok(work)
}

/// Builds the module.
fn build(version: Option<&str>) -> Result<(), Failure> {
    let built = module::build(&work()?, version, Kind::default())?;
    println!("{}: {}", built.file.display(), built.facts);
    Ok(())
}

/// Builds as much as this machine allows and lists the missing packages for the rest.
fn check() -> Result<(), Failure> {
    module::check_header(&work()?)?;
    // Includes the code of the broken variants, which no other build here contains.
    module::check_types(&work()?)?;
    println!("the Rust code of the module has no type error, and its C header compiles");
    let missing = module::missing(None);
    if missing.is_empty() {
        build(None)?;
    } else {
        println!("left out: the module; missing: {}", missing.join("; "));
        if toolchain::Toolchain::find().is_some() && module::has_binutils() {
            let (object, facts) = module::rust_object(&work()?, Kind::default())?;
            println!("{}: {facts}", object.display());
        }
    }
    let absent = guest::missing();
    if absent.is_empty() {
        println!("the module was not loaded; cargo xtask kernel run loads it in a guest");
    } else {
        println!("left out: a guest; missing: apt-get install {}", absent.join(" "));
    }
    Ok(())
}
