//! The compiler for the kernel module: one whose `core` can be recompiled, because the kernel requires its
//! mitigations in every function.
//!
//! That needs the source of `core` of exactly that compiler: rustup's component `rust-src` for the workspace's
//! toolchain, or Debian's `rustc-web` with `rust-web-src`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;
use crate::kernel::guest::Kind;
use crate::rustc::{answer, run, rustc};
use crate::vm::files::place_of;

/// A machine without an operating system: no vector registers, no red zone, the kernel's code model.
pub(super) const TARGET: &str = "x86_64-unknown-none";

/// Flags that match Debian's kernel 6.1: retpolines, return thunks, no straight-line speculation, no global offset
/// table.
const FLAGS: [&str; 12] = [
    "-Crelocation-model=static",
    "-Cforce-unwind-tables=yes",
    "-Crelro-level=off",
    "-Cjump-tables=no",
    "-Ctarget-feature=+harden-sls-ijmp,+harden-sls-ret",
    "-Zplt=yes",
    "-Zfunction-return=thunk-extern",
    "-Zdirect-access-external-data=yes",
    "-Zretpoline",
    "-Zretpoline-external-thunk",
    "-Cpanic=abort",
    "-Copt-level=2",
];

/// For KASAN: each access is checked first. Accesses to the stack and to constants are not checked.
const KASAN_FLAGS: [&str; 5] = [
    "-Zsanitizer=kernel-address",
    "-Cllvm-args=-asan-mapping-offset=0xdffffc0000000000",
    "-Cllvm-args=-asan-instrumentation-with-call-threshold=0",
    "-Cllvm-args=-asan-stack=0",
    "-Cllvm-args=-asan-globals=0",
];

/// Returns the compiler flags for this kind.
pub(super) fn flags(kind: Kind) -> Vec<&'static str> {
    let more = if kind.is_kasan { &KASAN_FLAGS[..] } else { &[] };
    FLAGS.iter().chain(more).copied().collect()
}

/// The kernel provides the functions of this crate.
const BUILTINS: &str = "#![feature(compiler_builtins)]\n#![allow(internal_features)]\n#![compiler_builtins]\n#![no_builtins]\n#![no_std]\n";

/// A compiler, and a directory for its `core`.
pub(super) struct Toolchain {
    pub(super) rustc: PathBuf,
    library: PathBuf,
    pub(super) version: String,
}

/// Names the missing packages if there is no toolchain.
pub(super) const MISSING: &str =
    "a compiler with the source of core: apt-get install rustc-web rust-web-src, or rustup component add rust-src";

impl Toolchain {
    /// Finds the first compiler with its source.
    pub(super) fn find() -> Option<Toolchain> {
        // By its full path: rustup's cargo puts its own directory first.
        let name = rustc().get_program().to_string_lossy().into_owned();
        let pinned = place_of(&name).unwrap_or_else(|| PathBuf::from(name));
        [pinned, PathBuf::from("/usr/bin/rustc")].into_iter().find_map(Toolchain::of)
    }

    fn of(rustc: PathBuf) -> Option<Toolchain> {
        let version = answer(Command::new(&rustc).arg("--version")).ok()?.trim().to_owned();
        let sysroot = answer(Command::new(&rustc).args(["--print", "sysroot"])).ok()?;
        let number = version.split_whitespace().nth(1)?;
        let libraries = [
            Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library"),
            PathBuf::from(format!("/usr/src/rustc-{number}/library")),
        ];
        let library = libraries.into_iter().find(|library| library.join("core/src/lib.rs").is_file())?;
        Some(Toolchain { rustc, library, version })
    }

    /// Compiles `core` for the kernel, unless that was done, and returns its directory.
    pub(super) fn sysroot(&self, work: &Path, kind: Kind) -> Result<PathBuf, Failure> {
        let sysroot = work.join(if kind.is_kasan { "sysroot-kasan" } else { "sysroot" });
        let flags = flags(kind);
        let libraries = sysroot.join("lib/rustlib").join(TARGET).join("lib");
        let (stamp, made_of) = (sysroot.join("made-of"), format!("{}\n{}\n", self.version, flags.join("\n")));
        if fs::read_to_string(&stamp).is_ok_and(|found| found == made_of) {
            return Ok(sysroot);
        }
        let with_path = |error: std::io::Error| format!("{}: {error}", libraries.display());
        _ = fs::remove_dir_all(&sysroot);
        fs::create_dir_all(&libraries).map_err(with_path)?;
        let builtins = work.join("builtins.rs");
        fs::write(&builtins, BUILTINS).map_err(with_path)?;
        let core = self.library.join("core/src/lib.rs");
        self.compile("core", &core, &sysroot, &flags)?;
        self.compile("compiler_builtins", &builtins, &sysroot, &flags)?;
        fs::write(stamp, made_of).map_err(with_path)?;
        Ok(sysroot)
    }

    fn compile(&self, name: &str, source: &Path, sysroot: &Path, flags: &[&str]) -> Result<(), Failure> {
        let libraries = sysroot.join("lib/rustlib").join(TARGET).join("lib");
        let mut command = Command::new(&self.rustc);
        command.args(["--crate-type=rlib", "--edition=2024", "--cap-lints=allow", "-Ccodegen-units=1"]);
        command.args(["--crate-name", name, "--target", TARGET]).args(flags);
        command.arg("--sysroot").arg(sysroot).arg("-o").arg(libraries.join(format!("lib{name}.rlib"))).arg(source);
        run(&mut self.unstable(command))
    }

    /// Enables unstable flags (`-Z`). The compiler does not guarantee their effect, so `object` verifies the result.
    pub(super) fn unstable(&self, mut command: Command) -> Command {
        command.env("RUSTC_BOOTSTRAP", "1").env("RUSTC", &self.rustc);
        command
    }
}
