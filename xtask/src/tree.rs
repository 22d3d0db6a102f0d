//! The workspace's source, and modified copies of it. Builds of a copy are never shipped.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;
use crate::rustc::{answer, cargo};

/// Returns the workspace's root.
pub(crate) fn root() -> Result<PathBuf, Failure> {
    let manifest = answer(cargo().args(["locate-project", "--workspace", "--message-format=plain"]))?;
    Ok(Path::new(manifest.trim()).parent().ok_or("a manifest lies in a directory")?.to_owned())
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
