//! Every canary is used by the code and hunted by a test. An unhunted canary would claim that its rule is tested when
//! the rule is not.
//!
//! Crates name their canaries without regard to other crates, so a name belongs to one crate, which is found by the
//! path before the name, by an import, or by the file's place. A medium matches canaries by their strings. If a crate
//! above has a canary with the same string, hunting that one counts for both.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A canary.
#[derive(Debug)]
struct Canary {
    /// The library of the crate that has the rule.
    owner: String,
    name: String,
    text: String,
}

/// A crate's sources.
struct Package {
    library: String,
    manifest: String,
    files: Vec<PathBuf>,
}

/// Names, each with a crate whose canary it may be.
type Named = BTreeSet<(String, String)>;

fn sources(dir: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() && entry.file_name().is_some_and(|name| name != "target") {
            sources(&entry, into);
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            into.push(entry);
        }
    }
}

fn packages(dir: &Path, into: &mut Vec<Package>) {
    let Ok(manifest) = fs::read_to_string(dir.join("Cargo.toml")) else {
        let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
        return entries.filter(|entry| entry.is_dir()).for_each(|entry| packages(&entry, into));
    };
    let mut files = Vec::new();
    sources(dir, &mut files);
    let named = manifest.split_once("[lib]").unwrap_or(("", &manifest)).1;
    let library = quoted(named.split_once("name = ").expect("a package has a name").1).replace('-', "_");
    into.push(Package { library, manifest, files });
}

fn quoted(text: &str) -> &str {
    text.split('"').nth(1).unwrap_or_default()
}

/// Returns the canaries that a source defines.
fn made(owner: &str, code: &str) -> Vec<Canary> {
    let lines = code.lines().filter_map(|line| line.trim().strip_prefix("pub const ")?.split_once(": Canary = "));
    lines.map(|(name, made)| Canary { owner: owner.into(), name: name.into(), text: quoted(made).into() }).collect()
}

/// Splits a source where its tests begin: at its start in a file of tests.
fn split_at_tests<'a>(path: &Path, source: &'a str) -> (&'a str, &'a str) {
    let is_of_tests = path.components().any(|part| part.as_os_str() == "tests" || part.as_os_str() == "tests.rs");
    source.split_at(if is_of_tests { 0 } else { source.find("#[cfg(test)]").unwrap_or(source.len()) })
}

fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Returns the crates whose module `canary` a source imports under that name, or its own crate if it imports none.
fn imported<'a>(source: &'a str, own: &'a str) -> Vec<&'a str> {
    let uses = source.split(';').filter_map(|statement| Some(statement.trim().rsplit_once("use ")?.1));
    let with_canary = uses.filter(|path| path.split(|c| !is_of_word(c)).any(|word| word == "canary"));
    let crates: Vec<_> =
        with_canary.filter(|path| !path.contains("canary as ")).map(|path| crate_of(path, own)).collect();
    if crates.is_empty() { vec![own] } else { crates }
}

/// Returns the crate in which a path begins.
fn crate_of<'a>(path: &'a str, own: &'a str) -> &'a str {
    match path.split("::").next().unwrap_or_default() {
        "crate" | "super" | "self" => own,
        first => first,
    }
}

/// Collects the names that `part` of a source writes as `canary::NAME`.
fn named(part: &str, imported: &[&str], own: &str, into: &mut Named) {
    for (at, _) in part.match_indices("canary::") {
        let path = part[..at].rsplit(|c| !is_of_word(c) && c != ':').next().unwrap_or_default();
        let name: String = part[at + "canary::".len()..].chars().take_while(|&c| is_of_word(c)).collect();
        let crates = if path.is_empty() { imported.to_vec() } else { vec![crate_of(path, own)] };
        into.extend(crates.into_iter().map(|of| (of.to_owned(), name.clone())));
    }
}

#[test]
fn every_canary_is_asked_for_and_hunted() {
    let mut house = Vec::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    ["bench", "crates", "frontends", "testing"].iter().for_each(|folder| packages(&root.join(folder), &mut house));
    let (mut canaries, mut asked, mut hunts) = (Vec::new(), Named::new(), Named::new());
    for Package { library, files, .. } in &house {
        for path in files {
            let source = fs::read_to_string(path).unwrap();
            let (code, tests) = split_at_tests(path, &source);
            canaries.extend(made(library, code));
            let imported = imported(&source, library);
            // Code that asks the medium for a canary breaks the rule, and so does code that passes a canary on. A test
            // that names a canary elsewhere creates the broken variant.
            let mut in_code = Named::new();
            named(code, &imported, library, &mut in_code);
            if library == "testkit" {
                // The conformance suite hunts for the engines.
                hunts.extend(in_code.iter().filter(|(owner, _)| owner != library).cloned());
            }
            asked.extend(in_code);
            let asks = source.split("breaks(").skip(1).filter_map(|rest| rest.split_once(')'));
            asks.for_each(|(canary, _)| named(canary, &imported, library, &mut asked));
            let hunting = tests.lines().filter(|line| !line.contains("breaks("));
            hunting.for_each(|line| named(line, &imported, library, &mut hunts));
        }
    }
    assert!(canaries.len() > 150 && canaries.iter().any(|canary| canary.owner == "engine_toy"), "{canaries:?}");
    let is_in = |canary: &Canary, named: &Named| named.contains(&(canary.owner.clone(), canary.name.clone()));
    let uses = |above: &str, below: &str| {
        let manifest = house.iter().find(|package| package.library == above).map(|package| &package.manifest);
        manifest.is_some_and(|manifest| manifest.contains(&format!("\n{below}.workspace")))
    };
    let is_hunted_above = |canary: &Canary| {
        let mut same = canaries.iter().filter(|other| other.text == canary.text && uses(&other.owner, &canary.owner));
        same.any(|other| is_in(other, &hunts))
    };
    let unasked: Vec<_> = canaries.iter().filter(|canary| !is_in(canary, &asked)).collect();
    assert!(unasked.is_empty(), "used nowhere: {unasked:?}");
    let unhunted: Vec<_> =
        canaries.iter().filter(|canary| !is_in(canary, &hunts) && !is_hunted_above(canary)).collect();
    assert!(unhunted.is_empty(), "hunted by no test: {unhunted:?}");
}
