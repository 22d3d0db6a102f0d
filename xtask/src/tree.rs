//! The workspace's source, and modified copies of it. Builds of a copy are never shipped.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use syn::Attribute;

use crate::failure::Failure;
use crate::rustc::{answer, cargo};

/// Returns the workspace's root.
pub(crate) fn root() -> Result<PathBuf, Failure> {
    let manifest = answer(cargo().args(["locate-project", "--workspace", "--message-format=plain"]))?;
    Ok(Path::new(manifest.trim()).parent().ok_or("a manifest lies in a directory")?.to_owned())
}

/// Folders of tests, and the file name of a module's tests: no part of a library or program.
const TESTS: [&str; 5] = ["tests", "tests.rs", "examples", "benches", "fuzz"];

/// Returns the files with one of the extensions below the current directory, by path, without build output and hidden
/// folders.
pub(crate) fn files(extensions: &[&str]) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    collect(Path::new(""), extensions, &mut found)?;
    found.sort();
    Ok(found)
}

fn collect(dir: &Path, extensions: &[&str], found: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let shown = if dir == Path::new("") { Path::new(".") } else { dir };
    for entry in fs::read_dir(shown).map_err(|error| format!("{}: {error}", shown.display()))? {
        let entry = entry.map_err(|error| error.to_string())?;
        let (name, path) = (entry.file_name(), dir.join(entry.file_name()));
        let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_dir && name != "target" && !name.to_string_lossy().starts_with('.') {
            collect(&path, extensions, found)?;
        } else if !is_dir && extensions.iter().any(|extension| path.extension().is_some_and(|is| is == *extension)) {
            found.push(path);
        }
    }
    Ok(())
}

/// Returns true for a file of tests, examples or benchmarks.
pub(crate) fn is_test(path: &Path) -> bool {
    path.iter().any(|part| TESTS.iter().any(|name| part == *name))
}

/// Returns true for the attribute `#[cfg(test)]`.
pub(crate) fn is_for_tests(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg")
        && attribute.parse_args::<syn::Meta>().is_ok_and(|meta| meta.path().is_ident("test"))
}

/// Copies the workspace to `tree`; `changed` transforms each file. Leaves unchanged files untouched, so that cargo
/// rebuilds only what changed.
pub(crate) fn copy(
    root: &Path,
    tree: &Path,
    mut changed: impl FnMut(&Path, Vec<u8>) -> Result<Vec<u8>, Failure>,
) -> Result<(), Failure> {
    let mut list = Command::new("git");
    list.arg("-C").arg(root).args(["ls-files", "--cached", "--others", "--exclude-standard"]);
    for file in answer(&mut list)?.lines().map(Path::new) {
        // Git still lists a file that was removed.
        let Ok(bytes) = fs::read(root.join(file)) else { continue };
        write_if_new(&tree.join(file), &changed(file, bytes)?)?;
    }
    Ok(())
}

fn write_if_new(file: &Path, bytes: &[u8]) -> Result<(), Failure> {
    if fs::read(file).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    let dir = file.parent().expect("a directory");
    fs::create_dir_all(dir)
        .and_then(|()| fs::write(file, bytes))
        .map_err(|error| format!("{}: {error}", file.display()))
}
