//! Builds the core-only crates where nothing but `core` exists.
//!
//! 1. Copies the compiler's libraries with `core` and without `alloc` and `std`. A crate, or a dependency of one,
//!    that names either does not compile. This needs neither network nor a further target.
//! 2. Verifies that the copy detects violations: a crate that uses `alloc` must fail.
//! 3. Builds the crates with that copy.
//! 4. Builds the crates for `x86_64-unknown-none`, a machine without an operating system, if that target is
//!    installed.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::failure::Failure;
use crate::rustc::{cargo, host, libraries, run, rustc};

/// The packages that need only `core`.
const PACKAGES: [&str; 6] = ["hikv-word", "hikv-pmem", "hikv-heap", "hikv-items", "hikv-undo-log", "hikv-pbtree"];
/// The libraries that make up `core`.
const CORE_LIBRARIES: [&str; 3] = ["libcore-", "libcompiler_builtins-", "librustc_std_workspace_core-"];
const BARE_TARGET: &str = "x86_64-unknown-none";

/// Runs the check.
pub(crate) fn check() -> Result<(), Failure> {
    let (work, host) = (work_dir()?, host()?);
    let sysroot = core_sysroot(&work, &host)?;
    hunt(&work, &sysroot, &host)?;
    build(&work, &host, Some(&sysroot))?;
    println!("{} build with only core", PACKAGES.join(", "));
    if libraries(BARE_TARGET)?.is_dir() {
        build(&work, BARE_TARGET, None)?;
        println!("{} build for {BARE_TARGET}", PACKAGES.join(", "));
    } else {
        println!("left out: {BARE_TARGET} is not installed (rustup target add {BARE_TARGET})");
    }
    Ok(())
}

/// Returns a working directory next to the program's.
fn work_dir() -> Result<PathBuf, Failure> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let target = program.ancestors().nth(2).ok_or("the program lies in no target directory")?;
    let work = target.join("core-only");
    fs::create_dir_all(&work).map_err(|error| format!("{}: {error}", work.display()))?;
    Ok(work)
}

/// Carries out step 1.
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

/// Carries out step 2.
fn hunt(work: &Path, sysroot: &Path, host: &str) -> Result<(), Failure> {
    let compiles = |source| compiles(source, work, sysroot, host);
    if !compiles("#![no_std]\npub fn answer() -> u32 { 42 }\n")? {
        return Err("a crate that needs only core does not compile".to_owned());
    }
    for source in ["#![no_std]\nextern crate alloc;\n", "#![no_std]\nextern crate std;\n", "pub fn answer() {}\n"] {
        if compiles(source)? {
            return Err(format!("a crate that needs more than core compiles, so this check detects nothing: {source}"));
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

/// Carries out steps 3 and 4.
fn build(work: &Path, target: &str, sysroot: Option<&Path>) -> Result<(), Failure> {
    let mut command = cargo();
    command.args(["build", "--quiet", "--locked", "--lib", "--target", target]).arg("--target-dir").arg(work);
    command.args(PACKAGES.iter().flat_map(|package| ["--package", package]));
    if let Some(sysroot) = sysroot {
        command.env("CARGO_ENCODED_RUSTFLAGS", format!("--sysroot\u{1f}{}", sysroot.display()));
    }
    run(&mut command)
}
