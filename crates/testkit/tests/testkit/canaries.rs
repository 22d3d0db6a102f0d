//! Every canary is asked for somewhere, and hunted by some test: one that is not says that a rule is watched, and nobody watches.

use std::fs;
use std::path::{Path, PathBuf};

/// The names that a crate's module `canary` has.
fn listed(path: &Path, source: &str) -> Vec<String> {
    if !path.ends_with("src/canary.rs") {
        return Vec::new();
    }
    let lines = source.lines().filter_map(|line| line.strip_prefix("pub const ")?.split_once(": Canary"));
    lines.map(|(name, _)| name.to_owned()).collect()
}

fn sources(dir: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() && entry.file_name().is_some_and(|name| name != "target") {
            sources(&entry, into);
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            into.push(entry);
        }
    }
}

/// Where a file's tests begin: at once, if it has nothing else.
fn split_at_tests<'a>(path: &Path, source: &'a str) -> (&'a str, &'a str) {
    let is_of_tests = path.components().any(|part| part.as_os_str() == "tests" || part.as_os_str() == "tests.rs");
    source.split_at(if is_of_tests { 0 } else { source.find("#[cfg(test)]").unwrap_or(source.len()) })
}

/// True if the words name the canary, and not one whose name only begins so.
fn names(source: &str, canary: &str) -> bool {
    let is_end = |rest: &str| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    source.split("canary::").skip(1).any(|rest| rest.strip_prefix(canary).is_some_and(is_end))
}

#[test]
fn every_canary_is_asked_for_and_hunted() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let (mut canaries, mut files) = (Vec::new(), Vec::new());
    sources(crates, &mut files);
    let (mut asked, mut hunts) = (String::new(), String::new());
    for path in files {
        let source = fs::read_to_string(&path).unwrap();
        canaries.extend(listed(&path, &source));
        let (code, tests) = split_at_tests(&path, &source);
        // Whoever asks the medium breaks the rule, and so does code that names one for another to ask; whoever names a canary
        // otherwise, in a test, makes a twin.
        asked.push_str(code);
        let asks = source.split("breaks(").skip(1).filter_map(|rest| rest.split_once(')'));
        asks.for_each(|(canary, _)| asked.extend([canary, "\n"]));
        hunts.extend(tests.lines().filter(|line| !line.contains("breaks(")));
    }
    assert!(canaries.len() > 80 && canaries.iter().any(|name| name == "TORN_PAIR"), "{canaries:?}");
    let lacking = |text: &str| canaries.iter().filter(|canary| !names(text, canary)).cloned().collect::<Vec<_>>();
    assert_eq!(lacking(&asked), Vec::<String>::new(), "asked for nowhere");
    assert_eq!(lacking(&hunts), Vec::<String>::new(), "hunted by no test");
}
