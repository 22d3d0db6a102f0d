//! `cargo xtask kernel`: InK as a module of the Linux kernel (`kernel/ink`, docs/kernel.md).
//!
//! `build [VERSION]` builds it for the kernel whose headers are installed. `check` builds what this machine allows, and says what it left out.

mod guest;
mod hostile;
mod life;
mod module;
mod object;
mod rounds;
mod show;
mod toolchain;

use std::path::PathBuf;

use crate::failure::Failure;

/// Where everything is made.
fn work() -> Result<PathBuf, Failure> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let work = program.ancestors().nth(2).ok_or("the program lies in no target directory")?.join("kernel");
    std::fs::create_dir_all(&work).map_err(|error| format!("{}: {error}", work.display()))?;
    Ok(work)
}

/// Builds the module.
pub(crate) fn build(version: Option<&str>) -> Result<(), Failure> {
    let built = module::build(&work()?, version, false)?;
    println!("{}: {}", built.file.display(), built.facts);
    Ok(())
}

/// Shows it in a guest.
pub(crate) fn show() -> Result<(), Failure> {
    show::show(&work()?)
}

/// Cuts the power of a guest so often.
pub(crate) fn rounds(count: u64, seed: Option<u64>) -> Result<(), Failure> {
    rounds::rounds(&work()?, count, seed)
}

/// Lets processes in a guest do what harm they can, for so long.
pub(crate) fn hostile(minutes: u64, seed: u64) -> Result<(), Failure> {
    hostile::hostile(&work()?, minutes, seed)
}

/// Builds what this machine allows, and says what it left out.
pub(crate) fn check() -> Result<(), Failure> {
    module::check_header(&work()?)?;
    let missing = module::missing(None);
    if missing.is_empty() {
        build(None)?;
    } else {
        module::check_types(&work()?)?;
        println!("the Rust code of the module has no type error, and its C header compiles");
        println!("left out: the module; missing: {}", missing.join("; "));
        if toolchain::Toolchain::find().is_some() && module::has_binutils() {
            let (object, facts) = module::rust_object(&work()?, false)?;
            println!("{}: {facts}", object.display());
        }
    }
    let absent = guest::missing();
    if absent.is_empty() {
        println!("not loaded here: cargo xtask kernel run does that, in a guest");
    } else {
        println!("left out: a guest; missing: apt-get install {}", absent.join(" "));
    }
    Ok(())
}
