//! The packages of the workspace, and their levels.

use std::collections::BTreeMap;
use std::path::PathBuf;

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};

use crate::failure::Failure;

/// A package that others use, or a program.
pub(super) struct Package {
    pub(super) name: String,
    /// One above the highest level that the package uses.
    pub(super) floor: usize,
    /// The packages of the workspace that it uses, except for tests.
    pub(super) uses: Vec<String>,
    /// `lib.rs`, or `main.rs` if there is no library.
    pub(super) root: PathBuf,
}

/// Returns all packages, lowest level first.
pub(super) fn packages() -> Result<Vec<Package>, Failure> {
    let metadata = MetadataCommand::new().no_deps().exec().map_err(|error| format!("cargo metadata: {error}"))?;
    let uses = uses(&metadata);
    let mut packages: Vec<Package> = metadata
        .workspace_packages()
        .into_iter()
        .filter_map(|package| {
            let target = package
                .targets
                .iter()
                .find(|target| target.is_lib())
                .or_else(|| package.targets.iter().find(|target| target.is_bin()))?;
            let name = package.name.to_string();
            Some(Package {
                floor: floor(&name, &uses),
                uses: uses[&name].clone(),
                root: target.src_path.clone().into(),
                name,
            })
        })
        .collect();
    packages.sort_by_key(|package| package.floor);
    Ok(packages)
}

type Uses = BTreeMap<String, Vec<String>>;

fn uses(metadata: &Metadata) -> Uses {
    let packages = metadata.workspace_packages();
    let is_ours = |name: &str| packages.iter().any(|package| package.name.as_str() == name);
    let of = |package: &&cargo_metadata::Package| {
        let normal = package.dependencies.iter().filter(|dependency| dependency.kind == DependencyKind::Normal);
        normal.map(|dependency| dependency.name.clone()).filter(|name| is_ours(name)).collect()
    };
    packages.iter().map(|package| (package.name.to_string(), of(package))).collect()
}

/// Computes the level of a package. Cargo permits no cycles among packages.
fn floor(name: &str, uses: &Uses) -> usize {
    1 + uses[name].iter().map(|used| floor(used, uses)).max().unwrap_or(0)
}
