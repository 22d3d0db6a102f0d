//! The Rust code as one object, and the checks that a kernel may load it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;
use crate::kernel::guest::Kind;
use crate::kernel::toolchain::{TARGET, Toolchain, flags};
use crate::rustc::{answer, cargo, run};

/// Symbols that the object may use from the kernel and from the module's C code.
const ALLOWED: [&str; 16] = [
    "__x86_indirect_thunk_r11",
    "__x86_return_thunk",
    "ink_host_yield",
    "ink_host_die",
    "ink_host_give_back",
    "ink_host_is_ending",
    "ink_host_is_killed",
    "ink_host_lend",
    "ink_host_log",
    "ink_host_merge_soon",
    "ink_host_now_ms",
    "ink_host_relax",
    "memcmp",
    "memcpy",
    "memmove",
    "memset",
];
/// Prefix of the functions that check each access in a KASAN kernel.
const KASAN: &str = "__asan_";
/// Relocations that the kernel's loader supports.
const RELOCATIONS: [&str; 5] = ["R_X86_64_64", "R_X86_64_PC32", "R_X86_64_PLT32", "R_X86_64_32S", "R_X86_64_32"];
/// Of the 16 KiB of a kernel stack.
const FRAME_BYTES_MAX: u64 = 3 << 10;
/// One section of each kind: the loader supports no others.
const SECTIONS: &str = "SECTIONS {
  .text : { *(.text .text.*) }
  .rodata : { *(.rodata .rodata.*) }
  .data : { *(.data .data.*) }
  .bss : { *(.bss .bss.*) }
}
";
const DROPPED: [&str; 6] = [".llvmbc", ".llvmcmd", ".comment", ".eh_frame", ".rela.eh_frame", ".note.gnu.property"];

/// Results of the checks.
pub(super) struct Facts {
    pub(super) text_bytes: u64,
    pub(super) frame_bytes: u64,
}

/// Compiles the crate at `source` into one object in `work`.
pub(super) fn make(toolchain: &Toolchain, source: &Path, work: &Path, kind: Kind) -> Result<PathBuf, Failure> {
    let sysroot = toolchain.sysroot(work, kind)?.display().to_string();
    let flags = [vec!["--sysroot", &sysroot], flags(kind)].concat();
    let target_dir = work.join(format!("object{}", kind.suffix()));
    let mut command = cargo();
    command
        .args(["build", "--quiet", "--release", "--locked", "--target", TARGET])
        .arg("--target-dir")
        .arg(&target_dir);
    command.args(kind.is_traced.then_some("--features=trace")).current_dir(source);
    // Captures stderr: for each crate the compiler warns that it does not know two processor features by name.
    command.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}")).stderr(std::process::Stdio::piped());
    let output = toolchain.unstable(command).output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    link(&target_dir.join(TARGET).join("release/libink_core.a"), &target_dir)
}

fn link(archive: &Path, work: &Path) -> Result<PathBuf, Failure> {
    let (script, linked, object) = (work.join("sections.ld"), work.join("linked.o"), work.join("rust_core.o"));
    fs::write(&script, SECTIONS).map_err(|error| format!("{}: {error}", script.display()))?;
    run(Command::new("ld")
        .arg("-r")
        .arg("-T")
        .arg(&script)
        .arg("-o")
        .arg(&linked)
        .arg("--whole-archive")
        .arg(archive))?;
    let mut command = Command::new("objcopy");
    command.args(["--strip-debug", "--wildcard", "--keep-global-symbol=ink_core_*"]);
    command.args(DROPPED.iter().flat_map(|section| ["-R", section]));
    run(command.arg(&linked).arg(&object))?;
    Ok(object)
}

/// Checks every symbol, relocation and instruction.
pub(super) fn check(object: &Path, kind: Kind) -> Result<Facts, Failure> {
    let symbols = answer(Command::new("nm").arg("-u").arg(object))?;
    let wanted: BTreeSet<&str> = symbols.split_whitespace().filter(|word| *word != "U").collect();
    let strange: Vec<_> = wanted.iter().filter(|symbol| !is_allowed(symbol, kind)).collect();
    refuse("symbols that are not allowed", &strange)?;
    let relocations = answer(Command::new("readelf").arg("-rW").arg(object))?;
    let kinds: BTreeSet<&str> = relocations.split_whitespace().filter(|word| word.starts_with("R_X86")).collect();
    refuse(
        "relocations that the kernel's loader does not support",
        &kinds.iter().filter(|kind| !RELOCATIONS.contains(kind)).collect::<Vec<_>>(),
    )?;
    let code = answer(Command::new("objdump").args(["-d", "--no-show-raw-insn"]).arg(object))?;
    let bad: Vec<_> = code.lines().filter(|line| is_unfit(line)).take(5).collect();
    refuse("instructions that a kernel must not contain", &bad)?;
    let frame_bytes = largest_frame(&code);
    // A KASAN kernel has stacks of twice the size.
    let allowed_bytes = FRAME_BYTES_MAX << u32::from(kind.is_kasan);
    if frame_bytes > allowed_bytes {
        return Err(format!("a function uses {frame_bytes} bytes of stack (at most {allowed_bytes} are allowed)"));
    }
    let size = answer(Command::new("size").arg(object))?;
    let text_bytes = size.split_whitespace().nth(6).and_then(|bytes| bytes.parse().ok()).unwrap_or(0);
    Ok(Facts { text_bytes, frame_bytes })
}

fn is_allowed(symbol: &str, kind: Kind) -> bool {
    ALLOWED.contains(&symbol) || kind.is_kasan && symbol.starts_with(KASAN)
}

fn refuse<T: std::fmt::Debug>(what: &str, found: &[T]) -> Result<(), Failure> {
    if found.is_empty() { Ok(()) } else { Err(format!("the Rust object: {what}: {found:?}")) }
}

/// Finds vector registers, whose values belong to the interrupted process, and returns and calls without thunks.
fn is_unfit(line: &str) -> bool {
    let Some((_, instruction)) = line.split_once(":\t") else { return false };
    // Also after a prefix, as in `repz ret`.
    let has = |names: &[&str]| instruction.split_whitespace().any(|word| names.contains(&word));
    let is_vector = ["%xmm", "%ymm", "%zmm", "%mm"].iter().any(|register| instruction.contains(register));
    is_vector || has(&["ret", "lret"]) || (has(&["call", "jmp"]) && instruction.contains('*'))
}

/// Returns the largest stack frame. A large frame is allocated page by page, so all allocations of a function are
/// added.
fn largest_frame(code: &str) -> u64 {
    let (mut largest, mut sum) = (0, 0);
    for line in code.lines() {
        if line.ends_with(">:") {
            sum = 0;
        }
        if let Some((_, taken)) = line.split_once("sub    $0x")
            && let Some((hex, "%rsp")) = taken.split_once(',')
        {
            sum += u64::from_str_radix(hex, 16).unwrap_or(u64::MAX);
            largest = largest.max(sum);
        }
    }
    largest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forbidden_kernel_instructions_are_found() {
        for line in [
            "  1:\tret",
            " 2:\tmovaps %xmm0,(%rax)",
            " 3:\tcall   *%rax",
            " 4:\tjmp    *0x8(%rax)",
            " 5:\trepz ret",
            " 6:\tnotrack jmp *%rax",
        ] {
            assert!(is_unfit(line), "{line}");
        }
        for line in ["  1:\tjmp    6 <x>", " 2:\tcall   7 <y>", " 3:\tclwb   (%rax)", "0000 <ret>:"] {
            assert!(!is_unfit(line), "{line}");
        }
    }

    #[test]
    fn call_chain_stack_use_is_summed() {
        let code = "0 <a>:\n 1:\tsub    $0x10,%rsp\n0 <b>:\n 2:\tsub    $0x1000,%rsp\n 3:\tsub    $0x8,%rsp\n";
        assert_eq!(largest_frame(code), 0x1008);
    }
}
