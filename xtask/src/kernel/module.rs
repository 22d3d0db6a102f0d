//! Builds the module: C and the Rust object, with the kernel's own build.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;
use crate::kernel::guest::Kind;
use crate::kernel::toolchain::Toolchain;
use crate::kernel::{object, toolchain};
use crate::rustc::{cargo, run};
use crate::tree::root;
use crate::vm::files::place_of;

/// The module's source, from the workspace's root.
const SOURCE: &str = "kernel/ink";
/// The files that the kernel's build uses.
const FILES: [&str; 9] =
    ["Kbuild", "ink.h", "core.h", "module.h", "main.c", "request.c", "room.c", "region.c", "host.c"];
/// Programs that build the module, each with its Debian package.
const TOOLS: [(&str, &str); 5] =
    [("make", "make"), ("gcc", "gcc"), ("ld", "binutils"), ("objcopy", "binutils"), ("readelf", "binutils")];

/// A C program that uses the header.
const HEADER_USER: &str = r#"#include "ink.h"
_Static_assert(sizeof(struct ink_request) == 64, "a request has 64 bytes");
_Static_assert(sizeof(struct ink_stat) == 80, "figures have 80 bytes");
_Static_assert(INK_READ == 0xc040d702u, "the number of a read");
"#;

/// A built module.
pub(super) struct Built {
    pub(super) file: PathBuf,
    pub(super) facts: String,
}

/// Returns the installed kernel headers: of `version`, or the latest.
pub(super) fn headers(version: Option<&str>) -> Option<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir("/usr/src").ok()?.flatten().map(|entry| entry.path()).collect();
    found.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_wanted = version.is_none_or(|version| name == format!("linux-headers-{version}"));
        name.starts_with("linux-headers-") && is_wanted && path.join("Module.symvers").is_file()
    });
    found.sort();
    found.pop()
}

/// Lists the parts that a build needs and this machine lacks.
pub(super) fn missing(version: Option<&str>) -> Vec<String> {
    let mut missing: Vec<String> = TOOLS
        .iter()
        .filter(|(tool, _)| place_of(tool).is_none())
        .map(|(tool, package)| format!("{tool}: apt-get install {package}"))
        .collect();
    if Toolchain::find().is_none() {
        missing.push(toolchain::MISSING.to_owned());
    }
    if headers(version).is_none() {
        let package = version.map_or("amd64".to_owned(), str::to_owned);
        missing.push(format!("the kernel's headers: apt-get install linux-headers-{package}"));
    }
    missing
}

/// Compiles the C header as a program would.
pub(super) fn check_header(work: &Path) -> Result<(), Failure> {
    let file = work.join("header.c");
    fs::write(&file, HEADER_USER).map_err(|error| format!("{}: {error}", file.display()))?;
    let mut compile = Command::new("cc");
    compile.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I"]).arg(root()?.join(SOURCE));
    run(compile.arg(&file))
}

/// Checks the Rust code with the workspace's compiler, for this machine.
pub(super) fn check_types(work: &Path) -> Result<(), Failure> {
    let mut command = cargo();
    command.args(["check", "--quiet", "--locked", "--features=trace", "--target-dir"]).arg(work.join("types"));
    run(command.current_dir(root()?.join(SOURCE).join("core")))
}

/// Returns true if an object can be linked and examined.
pub(super) fn has_binutils() -> bool {
    TOOLS.iter().all(|(tool, package)| *package != "binutils" || place_of(tool).is_some())
}

/// Builds the Rust code for the kernel as one verified object.
pub(super) fn rust_object(work: &Path, kind: Kind) -> Result<(PathBuf, String), Failure> {
    let toolchain = Toolchain::find().ok_or(toolchain::MISSING)?;
    let object = object::make(&toolchain, &root()?.join(SOURCE).join("core"), work, kind)?;
    let object::Facts { text_bytes, frame_bytes } = object::check(&object, kind)?;
    let version = &toolchain.version;
    Ok((object, format!("{version}; {text_bytes} bytes of code, the largest frame {frame_bytes}")))
}

/// Builds the module for the kernel `version`, or for the latest kernel with headers.
pub(super) fn build(work: &Path, version: Option<&str>, kind: Kind) -> Result<Built, Failure> {
    let missing = missing(version);
    if !missing.is_empty() {
        return Err(format!("the module cannot be built here; missing:\n  {}", missing.join("\n  ")));
    }
    build_for(work, &headers(version).ok_or("they were there just now")?, kind)
}

/// Builds the module for the kernel whose headers or build are in `headers`.
pub(super) fn build_for(work: &Path, headers: &Path, kind: Kind) -> Result<Built, Failure> {
    let (object, facts) = rust_object(work, kind)?;
    let dir = work.join(format!("module{}", kind.suffix()));
    lay_out(&root()?.join(SOURCE), &object, &dir)?;
    let mut make = Command::new("make");
    make.arg("-s").arg("-C").arg(headers).arg(format!("M={}", dir.display()));
    make.args(kind.is_traced.then_some("HIKV_INK_TRACE=y")).arg("modules");
    let output = make.output().map_err(|error| format!("{make:?}: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let warnings = String::from_utf8_lossy(&output.stderr);
    if let Some(warning) = warnings.lines().find(|line| line.contains("warning:") && line.contains(".c:")) {
        return Err(format!("the compiler warns: {warning}"));
    }
    let name = headers.file_name().unwrap_or_default().to_string_lossy().replace("linux-headers-", "");
    Ok(Built { file: dir.join("hikv_ink.ko"), facts: format!("for {name}; {facts}") })
}

fn lay_out(source: &Path, object: &Path, dir: &Path) -> Result<(), Failure> {
    let with_path = |error: std::io::Error| format!("{}: {error}", dir.display());
    _ = fs::remove_dir_all(dir);
    fs::create_dir_all(dir).map_err(with_path)?;
    for file in FILES {
        fs::copy(source.join(file), dir.join(file)).map_err(|error| format!("{file}: {error}"))?;
    }
    let shipped = dir.join("rust_core.o_shipped");
    fs::copy(object, &shipped).map_err(with_path)?;
    unwindable(&shipped);
    // The kernel's build needs a record of how each object was made.
    fs::write(dir.join(".rust_core.o.cmd"), "").map_err(with_path)
}

/// Adds tables for the kernel's unwinder, as its build does for C. Without the tool, traces of faults are guesses.
fn unwindable(object: &Path) {
    let objtool = Path::new("/usr/lib/linux-kbuild-6.1/tools/objtool/objtool");
    if objtool.is_file() {
        let mut command = Command::new(objtool);
        command.args(["--hacks=jump_label", "--hacks=noinstr", "--orc", "--retpoline", "--rethunk", "--sls"]);
        _ = command
            .args(["--static-call", "--uaccess", "--module"])
            .arg(object)
            .stderr(std::process::Stdio::null())
            .status();
    }
}
