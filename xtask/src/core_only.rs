//! The core-only crates, built where there is nothing but `core`.
//!
//! 1. A copy of the compiler's libraries is made that has `core` and no `alloc` or `std`. A crate, or a dependency of
//!    one, that names either of those finds nothing there. This needs no network and no further target.
//! 2. A canary shows that the copy tells the two apart: a crate that uses `alloc` must fail.
//! 3. The crates are built with that copy.
//! 4. Where the target `x86_64-unknown-none` is installed the crates are built for it, too: a machine without an
//!    operating system.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::failure::Failure;
use crate::rustc::{cargo, host, libraries, run, rustc};

/// The packages that promise it.
const PACKAGES: [&str; 6] = ["hikv-word", "hikv-pmem", "hikv-heap", "hikv-items", "hikv-undo-log", "hikv-pbtree"];
/// What `core` is made of.
const CORE_LIBRARIES: [&str; 3] = ["libcore-", "libcompiler_builtins-", "librustc_std_workspace_core-"];
const BARE_TARGET: &str = "x86_64-unknown-none";

/// Runs the check.
pub(crate) fn check() -> Result<(), Failure> {
    let (work, host) = (work_dir()?, host()?);
    let sysroot = core_sysroot(&work, &host)?;
    hunt(&work, &sysroot, &host)?;
    build(&work, &host, Some(&sysroot))?;
    println!("{} build with core alone", PACKAGES.join(", "));
    if libraries(BARE_TARGET)?.is_dir() {
        build(&work, BARE_TARGET, None)?;
        println!("{} build for {BARE_TARGET}", PACKAGES.join(", "));
    } else {
        println!("left out: {BARE_TARGET} is not installed (rustup target add {BARE_TARGET})");
    }
    Ok(())
}

/// A directory of our own, beside the program's.
fn work_dir() -> Result<PathBuf, Failure> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let target = program.ancestors().nth(2).ok_or("the program lies in no target directory")?;
    let work = target.join("core-only");
    fs::create_dir_all(&work).map_err(|error| format!("{}: {error}", work.display()))?;
    Ok(work)
}

/// Step 1.
fn core_sysroot(work: &Path, host: &str) -> Result<PathBuf, Failure> {
    let sysroot = work.join("sysroot");
    link_core(&libraries(host)?, &sysroot, &sysroot.join("lib/rustlib").join(host).join("lib"))
        .map_err(|error| format!("{}: {error}", sysroot.display()))?;
    Ok(sysroot)
}

fn link_core(from: &Path, sysroot: &Path, to: &Path) -> std::io::Result<()> {
    if sysroot.exists() {
        fs::remove_dir_all(sysroot)?;
    }
    fs::create_dir_all(to)?;
    for library in fs::read_dir(from)? {
        let library = library?;
        if CORE_LIBRARIES.iter().any(|core| library.file_name().to_string_lossy().starts_with(core)) {
            symlink(library.path(), to.join(library.file_name()))?;
        }
    }
    Ok(())
}

/// Step 2.
fn hunt(work: &Path, sysroot: &Path, host: &str) -> Result<(), Failure> {
    let compiles = |source| compiles(source, work, sysroot, host);
    if !compiles("#![no_std]\npub fn answer() -> u32 { 42 }\n")? {
        return Err("a crate that needs core alone does not compile".to_owned());
    }
    for source in ["#![no_std]\nextern crate alloc;\n", "#![no_std]\nextern crate std;\n", "pub fn answer() {}\n"] {
        if compiles(source)? {
            return Err(format!("a crate that needs more than core compiles, so this check shows nothing: {source}"));
        }
    }
    Ok(())
}

fn compiles(source: &str, work: &Path, sysroot: &Path, host: &str) -> Result<bool, Failure> {
    let file = work.join("canary.rs");
    fs::write(&file, source).map_err(|error| format!("{}: {error}", file.display()))?;
    let mut command = rustc();
    command.args(["--crate-name=canary", "--crate-type=rlib", "--edition=2024", "--target", host]);
    command.arg("--sysroot").arg(sysroot).arg("--out-dir").arg(work).arg(&file).stderr(Stdio::null());
    let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
    Ok(status.success())
}

/// Steps 3 and 4.
fn build(work: &Path, target: &str, sysroot: Option<&Path>) -> Result<(), Failure> {
    let mut command = cargo();
    command.args(["build", "--quiet", "--locked", "--lib", "--target", target]).arg("--target-dir").arg(work);
    command.args(PACKAGES.iter().flat_map(|package| ["--package", package]));
    if let Some(sysroot) = sysroot {
        command.env("CARGO_ENCODED_RUSTFLAGS", format!("--sysroot\u{1f}{}", sysroot.display()));
    }
    run(&mut command)
}
