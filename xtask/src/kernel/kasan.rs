//! Builds a kernel that detects its own faults, from Debian's source: KASAN, lockdep, full preemption, and little
//! else (`kernel/ink/kasan.config`). It is built once, below the target directory, only for guests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::failure::Failure;
use crate::rustc::run;
use crate::tree::root;
use crate::vm::files;

const SOURCE: &str = "/usr/src/linux-source-6.1.tar.xz";
const CONFIG: &str = "kernel/ink/kasan.config";
/// Programs that build it, each with its Debian package.
const TOOLS: [(&str, &str); 7] = [
    ("make", "make"),
    ("gcc", "gcc"),
    ("flex", "flex"),
    ("bison", "bison"),
    ("bc", "bc"),
    ("lz4", "lz4"),
    ("xz", "xz-utils"),
];
/// The kernel image for the emulator: the entry of `vmlinux` for emulators (PVH) reads shadow memory that does not
/// exist yet.
pub(super) const IMAGE: &str = "arch/x86/boot/bzImage";
/// Headers that the kernel's own tools need.
const HEADERS: [(&str, &str); 2] =
    [("/usr/include/libelf.h", "libelf-dev"), ("/usr/include/openssl/opensslv.h", "libssl-dev")];
/// A third of the source, which this configuration does not use.
const LEFT_OUT: [&str; 3] = ["*/drivers/gpu/drm/amd/include/*", "*/Documentation/[!K]*", "*/arch/*/boot/dts/*"];

/// Lists the missing packages.
fn missing() -> Vec<&'static str> {
    let mut missing = files::missing(&TOOLS);
    let found = HEADERS.iter().chain(&[(SOURCE, "linux-source-6.1")]);
    missing.extend(found.filter(|(file, _)| !Path::new(file).exists()).map(|&(_, package)| package));
    missing
}

/// Builds the kernel, unless that was done; returns the directory with [`IMAGE`] and the files to build modules.
pub(super) fn kernel(work: &Path) -> Result<PathBuf, Failure> {
    let missing = missing();
    if !missing.is_empty() {
        let packages = missing.join(" ");
        return Err(format!("packages for the kernel are missing: apt-get install --no-install-recommends {packages}"));
    }
    let (work, config) = (work.join("kasan"), root()?.join(CONFIG));
    let (source, built) = (work.join("linux-source-6.1"), work.join("built"));
    let wanted = fs::read_to_string(&config).map_err(|error| format!("{}: {error}", config.display()))?;
    let stamp = built.join("made-of");
    if fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        return Ok(built);
    }
    fs::create_dir_all(&work).map_err(|error| format!("{}: {error}", work.display()))?;
    println!("building a kernel with KASAN, once: ten minutes of processor time, two gigabytes");
    if !source.join("Makefile").is_file() {
        let mut unpack = Command::new("tar");
        unpack.args(LEFT_OUT.map(|left_out| format!("--exclude={left_out}")));
        run(unpack.arg("-C").arg(&work).args(["-xf", SOURCE]))?;
    }
    let make = |targets: &[&str], word: String| {
        let mut make = Command::new("make");
        make.arg("-s").arg("-C").arg(&source).arg(format!("O={}", built.display())).arg(word).args(targets);
        run(make.stdout(Stdio::null()))
    };
    make(&["allnoconfig"], format!("KCONFIG_ALLCONFIG={}", config.display()))?;
    has_all(&built.join(".config"), &wanted)?;
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get());
    make(&["bzImage", "modules"], format!("-j{processors}"))?;
    fs::write(stamp, wanted).map_err(|error| error.to_string())?;
    Ok(built)
}

/// Checks that the configuration has all wanted options: the kernel's build silently drops options with missing
/// dependencies.
fn has_all(config: &Path, wanted: &str) -> Result<(), Failure> {
    let found = fs::read_to_string(config).map_err(|error| format!("{}: {error}", config.display()))?;
    let is_there = |line: &&str| line.starts_with('#') || line.is_empty() || found.lines().any(|other| other == *line);
    let absent: Vec<&str> = wanted.lines().filter(|line| !is_there(line)).collect();
    if absent.is_empty() { Ok(()) } else { Err(format!("the kernel's configuration lacks {absent:?}")) }
}
