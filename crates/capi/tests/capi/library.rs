//! The shared library, linked once for all tests.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::{env, fs};

/// The crate's directory.
pub(crate) fn source() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns a directory with `libhikv.so` and `libhikv.so.1`, linked as `scripts/c-library` does.
pub(crate) fn directory() -> &'static Path {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(|| {
        let tests = env::current_exe().expect("the test has a path");
        let built = tests.parent().expect("it is in a directory");
        let directory = built.join("hikv-capi-tests");
        fs::create_dir_all(&directory).expect("a directory");
        let shared = directory.join("libhikv.so.1");
        run(Command::new(source().join("link")).arg(static_library(built)).arg(&shared));
        fs::copy(&shared, directory.join("libhikv.so")).expect("it is copied");
        directory
    })
}

/// Runs a command, and returns its output.
///
/// # Panics
/// If the command fails.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?} ends with {}\n{out}\n{err}", output.status);
    out.into_owned()
}

/// Returns the static library next to the tests: the newest, if earlier builds have left others.
fn static_library(built: &Path) -> PathBuf {
    let files =
        fs::read_dir(built).expect("the directory of the tests").map(|entry| entry.expect("it is listed").path());
    let libraries = files.filter(|path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("libhikv_capi") && name.ends_with(".a")
    });
    let age = |path: &PathBuf| fs::metadata(path).and_then(|metadata| metadata.modified()).expect("it has a time");
    libraries.max_by_key(age).expect("cargo has built the static library")
}
