//! C programs, compiled as C11 and C++17, run plainly, with AddressSanitizer and under valgrind.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::library::{directory, run, source};

/// Rounds of the threads under valgrind, which runs them thirty times as slowly.
const SLOW_ROUNDS: &str = "10";

const STRICT: [&str; 4] = ["-Wall", "-Wextra", "-Werror", "-g"];

const C_FLAGS: [&str; 5] = ["-x", "c", "-std=c11", "-pthread", "-D_GNU_SOURCE"];
const LEAKS: &str = "--leak-check=full";

const CPP_FLAGS: [&str; 4] = ["-x", "c++", "-std=c++17", "-pthread"];

/// Compiles a program, and returns its path.
fn compiled(program: &Path, name: &str, flags: &[&str]) -> PathBuf {
    let out = directory().join(name);
    run(Command::new("cc")
        .args(STRICT)
        .args(flags)
        .arg(program)
        .arg("-I")
        .arg(source().join("include"))
        .arg("-o")
        .arg(&out)
        .arg("-L")
        .arg(directory())
        .args(["-lhikv", "-lpthread", "-Wl,-rpath,$ORIGIN"]));
    out
}

/// Returns an empty directory, in memory if possible.
fn empty() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    dir.expect("a directory")
}

fn test_program(name: &str) -> PathBuf {
    source().join("tests/c").join(name).with_extension("c")
}

#[expect(clippy::print_stderr, reason = "a test that is left out must say so")]
fn skipped(why: &str) {
    eprintln!("skipped: {why}");
}

/// Runs a test program as C and as C++.
fn run_plainly(name: &str) {
    for (language, flags) in [("c", &C_FLAGS[..]), ("cpp", &CPP_FLAGS[..])] {
        if language == "cpp" && Command::new("c++").arg("--version").output().is_err() {
            skipped("no C++ compiler");
            continue;
        }
        let program = compiled(&test_program(name), &format!("{name}-{language}"), flags);
        let dir = empty();
        run(Command::new(program).arg(dir.path()));
    }
}

/// Runs a test program with AddressSanitizer.
fn run_with_sanitizer(name: &str) {
    let flags = ["-x", "c", "-std=c11", "-pthread", "-D_GNU_SOURCE"];
    let program =
        compiled(&test_program(name), &format!("{name}-asan"), &[&flags[..], &["-fsanitize=address"]].concat());
    let dir = empty();
    let suppressed =
        format!("suppressions={}:print_suppressions=0", test_program("leaks").with_extension("lsan").display());
    let mut command = Command::new(program);
    command.arg(dir.path()).env("HIKV_TEST_ROUNDS", SLOW_ROUNDS).env("LSAN_OPTIONS", suppressed);
    // The library has no frame pointers, which the quick way to find a leak's callers needs.
    run(command.env("ASAN_OPTIONS", "fast_unwind_on_malloc=0"));
}

/// Runs a test program with AddressSanitizer, and under valgrind if it is there.
fn run_checked(name: &str, leaks: &str) {
    run_with_sanitizer(name);
    if Command::new("valgrind").arg("--version").output().is_err() {
        skipped("no valgrind");
        return;
    }
    let (program, dir) = (compiled(&test_program(name), &format!("{name}-valgrind"), &C_FLAGS), empty());
    run(Command::new("valgrind")
        .args([
            "-q",
            "--fair-sched=try",
            "--error-exitcode=9",
            "--errors-for-leak-kinds=definite",
            "--show-leak-kinds=definite",
            leaks,
        ])
        .arg(format!("--suppressions={}", test_program("leaks").with_extension("valgrind").display()))
        .arg(program)
        .arg(dir.path())
        .env("HIKV_TEST_ROUNDS", SLOW_ROUNDS));
}

#[test]
fn keys_program() {
    run_plainly("keys");
}

#[test]
fn keys_checked() {
    run_checked("keys", LEAKS);
}

#[test]
fn trees_program() {
    run_plainly("trees");
}

#[test]
fn trees_checked() {
    run_checked("trees", LEAKS);
}

#[test]
fn threads_program() {
    run_plainly("threads");
}

#[test]
fn threads_checked() {
    run_checked("threads", LEAKS);
}

#[test]
fn fork_program() {
    run_plainly("fork");
}

#[test]
fn fork_checked() {
    // A child of a fork has the memory of threads that it does not have.
    run_checked("fork", "--leak-check=no");
}

#[test]
fn errors_program() {
    run_plainly("errors");
}

#[test]
fn errors_checked() {
    // Not under valgrind, which leaves no addresses for a store of the default options.
    run_with_sanitizer("errors");
}

/// The program of the page runs as it is printed, with the output of the page.
#[test]
fn the_program_of_the_page() {
    let page = fs::read_to_string(source().join("../../docs/c.md")).expect("the page is there");
    let block = |kind: &str| {
        let start =
            page.find(&format!("```{kind}\n")).unwrap_or_else(|| panic!("the page has no {kind}")) + kind.len() + 4;
        page[start..start + page[start..].find("```").expect("it ends")].to_owned()
    };
    let file = directory().join("first.c");
    fs::write(&file, block("c")).expect("it is written");
    let program = compiled(&file, "first", &["-std=c11"]);
    let dir = empty();
    assert_eq!(run(Command::new(program).current_dir(dir.path())), block("text"));
}
