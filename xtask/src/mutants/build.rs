//! Builds all mutants at once: a copy of the workspace in which an environment variable disables one step. The
//! shipped source has no such switch.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cargo_metadata::MetadataCommand;

use super::judges::Suite;
use super::sites::Site;
use crate::failure::Failure;
use crate::rustc::cargo;
use crate::tree;

/// Appended to each crate that has mutants.
const SWITCH: &str = r#"
#[doc(hidden)]
#[allow(missing_docs, dead_code, unused_extern_crates)]
pub(crate) fn is_mutated(number: u64) -> bool {
    extern crate std;
    static ASKED: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
    let asked = || std::env::var("MUT").ok().and_then(|number| number.parse().ok()).unwrap_or(0);
    *ASKED.get_or_init(asked) == number
}
"#;

/// A built suite.
pub(super) struct Program {
    pub(super) suite: Suite,
    pub(super) file: PathBuf,
    /// The package's directory, where tests run.
    pub(super) dir: PathBuf,
}

/// Copies the workspace to `work`, with a switch at each site.
pub(super) fn copy(root: &Path, work: &Path, sites: &[Site]) -> Result<PathBuf, Failure> {
    let tree = work.join("tree");
    let mut changed: BTreeMap<&Path, Vec<&Site>> = BTreeMap::new();
    for site in sites {
        changed.entry(&site.file).or_default().push(site);
    }
    tree::copy(root, &tree, |file, mut bytes| {
        if let Some(sites) = changed.get(file) {
            bytes = switched(&String::from_utf8_lossy(&bytes), sites).into_bytes();
        }
        if file.ends_with("src/lib.rs") && !file.starts_with("kernel") {
            bytes.extend_from_slice(SWITCH.as_bytes());
        }
        Ok(bytes)
    })?;
    Ok(tree)
}

fn switched(text: &str, sites: &[&Site]) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for site in sites {
        lines[site.line] = site.switched();
    }
    lines.join("\n") + "\n"
}

/// Builds a suite of the copy, in its own target directory: otherwise cargo would mistake the copy for the workspace.
pub(super) fn program(tree: &Path, suite: Suite) -> Result<Program, Failure> {
    let mut command = cargo();
    command.current_dir(tree).env("CARGO_TARGET_DIR", tree.with_file_name("target"));
    command.args(["test", "--no-run", "--locked", "--package", suite.package]).args(suite.target);
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let file = said.lines().rev().find_map(|line| line.trim().strip_prefix("Executable ")?.split_once(" ("));
    let Some((_, file)) = file.filter(|_| output.status.success()) else {
        return Err(format!("{command:?} ended with {}:\n{said}", output.status));
    };
    Ok(Program { suite, file: tree.join(file.trim_end_matches(')')), dir: dir_of(tree, suite.package)? })
}

/// Returns the package's folder.
fn dir_of(tree: &Path, package: &str) -> Result<PathBuf, Failure> {
    let mut command = MetadataCommand::new();
    let metadata = command.manifest_path(tree.join("Cargo.toml")).no_deps().exec();
    let metadata = metadata.map_err(|error| format!("cargo metadata: {error}"))?;
    let found = metadata.workspace_packages().into_iter().find(|found| found.name == package);
    let manifest = &found.ok_or_else(|| format!("the workspace has no package {package}"))?.manifest_path;
    Ok(manifest.parent().ok_or("a manifest is in a directory")?.into())
}
