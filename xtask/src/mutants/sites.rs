//! Finds the steps that can be omitted, by keywords in the source; each step is one line.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// A call that orders, flushes, syncs, waits, settles, publishes, seals, poisons, kills, marks or retires.
const STEPS: [&str; 18] = [
    "advance",
    "commit",
    "erase",
    "flush",
    "invalidate",
    "kill",
    "make_durable",
    "mark_",
    "order",
    "persist",
    "poison",
    "publish",
    "retire",
    "seal",
    "settle",
    "sync",
    "unlink",
    "wait",
];
/// Words in conditions that check again for concurrent changes.
const LOOKS_AGAIN: [&str; 20] = [
    "chang",
    "dead",
    "durable",
    "epoch",
    "fresh",
    "generation",
    "in_owner",
    "is_owner",
    "locked",
    "moved",
    "pinned",
    "poison",
    "retired",
    "same",
    "sequence",
    "stale",
    "synced",
    "valid",
    "version",
    "whole",
];
/// Lines that are not steps of a protocol (such as hints to the kernel), or that cannot be omitted on their own.
const NO_STEPS: [&str; 8] = [
    "SYNC_FILE_RANGE",
    "forget",
    "fn ",
    "notify_all",
    "retired_words()",
    "wait(&mut",
    "wait_until(&mut",
    "word(record::",
];

/// A branch of a broken variant: it does wrong on purpose, and no shipped store takes it.
const BROKEN_BRANCH: &str = "breaks(canary::";
/// The file of the functions that only such branches call.
const BROKEN_FILE: &str = "broken.rs";
/// The beginning of the doc comment of such a function elsewhere.
const BROKEN_FUNCTION: &str = "/// The broken variant";

/// The change to a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// The call is omitted.
    LeftOut,
    /// The lock is not acquired.
    NotLocked,
    /// The condition is false.
    NotLookedAt,
}

/// A line that a mutant changes.
#[derive(Clone, Debug)]
pub(super) struct Site {
    /// Relative to the workspace.
    pub(super) file: PathBuf,
    /// Counted from 0.
    pub(super) line: usize,
    pub(super) kind: Kind,
    pub(super) text: String,
    /// Number of equal lines before it in its file.
    pub(super) nth: usize,
}

impl Site {
    /// Returns the name that identifies the site from run to run, although lines may move.
    pub(super) fn name(&self) -> String {
        let nth = if self.nth == 0 { String::new() } else { format!(" ({})", self.nth + 1) };
        format!("{} `{}`{nth}", self.file.display(), self.text.replace('|', "¦"))
    }

    /// Returns true if the site is in this folder, with or without the first part of its path, or in a file whose
    /// path ends with `which`.
    pub(super) fn is_of(&self, which: &str) -> bool {
        let below: PathBuf = self.file.iter().skip(1).collect();
        [&self.file, &below].iter().any(|file| file.starts_with(which)) || self.file.ends_with(which)
    }

    /// Returns the number that selects the site. It depends only on the name, so that a build stays valid when other
    /// sites appear or disappear.
    pub(super) fn number(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.name().hash(&mut hasher);
        hasher.finish()
    }

    /// Returns the line for the build of all mutants.
    pub(super) fn switched(&self) -> String {
        let (text, number) = (&self.text, self.number());
        match self.kind {
            Kind::LeftOut => format!("if !crate::is_mutated({number}) {{ {text} }}"),
            Kind::NotLocked => {
                let (name, lock) = text.trim_end_matches(';').split_once(" = ").expect("it binds a lock");
                format!("{name} = if crate::is_mutated({number}) {{ None }} else {{ Some({lock}) }};")
            }
            Kind::NotLookedAt => {
                let condition = text.trim_start_matches("if ").trim_end_matches(" {");
                format!("if !crate::is_mutated({number}) && ({condition}) {{")
            }
        }
    }
}

/// Finds all sites of a package, given by its folder, except in its tests.
pub(super) fn of(root: &Path, folder: &str) -> Result<Vec<Site>, Failure> {
    let mut files = Vec::new();
    sources(&root.join(folder).join("src"), &mut files)?;
    files.sort();
    let mut sites = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let file = file.strip_prefix(root).expect("it lies below").to_owned();
        sites.extend(in_text(&file, &text));
    }
    Ok(sites)
}

fn sources(dir: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    for entry in fs::read_dir(dir).map_err(|error| format!("{}: {error}", dir.display()))?.flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() && name != "tests" {
            sources(&path, files)?;
        } else if name.ends_with(".rs") && ![BROKEN_FILE, "tests.rs"].contains(&&*name) {
            files.push(path);
        }
    }
    Ok(())
}

fn in_text(file: &Path, text: &str) -> Vec<Site> {
    let indented: Vec<&str> = text.lines().collect();
    let lines: Vec<&str> = indented.iter().map(|line| line.trim()).collect();
    let (mut sites, mut broken_end): (Vec<Site>, usize) = (Vec::new(), 0);
    for (line, &text) in lines.iter().enumerate() {
        if text.starts_with("#[cfg(") && text.contains("test") {
            // Skips code that exists only in tests.
            broken_end = broken_end.max(end_of_block(&indented, line + 1));
        } else if is_broken_branch(text) {
            broken_end = end_of_block(&indented, line);
        } else if text.starts_with(BROKEN_FUNCTION) {
            broken_end = lines
                .iter()
                .skip(line)
                .position(|line| line.ends_with('{'))
                .map_or(0, |begin| end_of_block(&indented, line + begin));
        }
        if line < broken_end {
            continue;
        }
        if let Some(kind) = kind(text, lines.get(line + 1).copied().unwrap_or("")) {
            let nth = sites.iter().filter(|site| site.text == text).count();
            sites.push(Site { file: file.into(), line, kind, text: text.into(), nth });
        }
    }
    sites
}

/// Returns true if a branch begins here that only a broken variant takes.
fn is_broken_branch(text: &str) -> bool {
    let asks = text.find(BROKEN_BRANCH).map(|at| &text[..at]);
    text.ends_with('{') && asks.is_some_and(|before| !before.rsplit(' ').next().unwrap_or("").starts_with('!'))
}

/// Returns the line that ends the block which begins here.
fn end_of_block(lines: &[&str], begin: usize) -> usize {
    let depth = |line: &str| line.len() - line.trim_start().len();
    let inside = lines[begin + 1..].iter().take_while(|line| line.is_empty() || depth(line) > depth(lines[begin]));
    begin + 1 + inside.count()
}

fn kind(text: &str, next: &str) -> Option<Kind> {
    if NO_STEPS.iter().any(|no_step| text.contains(no_step)) || !is_balanced(text) {
        return None;
    }
    if let Some((name, lock)) = text.strip_prefix("let _").and_then(|text| text.split_once(" = ")) {
        let is_lock = text.ends_with(';') && !name.contains(':') && (lock.contains("lock") || lock.contains("turn"));
        return is_lock.then_some(Kind::NotLocked);
    }
    let leaves = ["return", "continue", "break"].iter().any(|word| next.starts_with(word));
    if text.starts_with("if ") && text.ends_with(" {") && !text.contains("let ") && leaves {
        return LOOKS_AGAIN.iter().any(|word| text.contains(word)).then_some(Kind::NotLookedAt);
    }
    is_step(text).then_some(Kind::LeftOut)
}

/// Recognises a step: a call statement whose value is unused and whose last method has the name of a step.
fn is_step(text: &str) -> bool {
    let Some(call) = text.strip_suffix(';') else { return false };
    let is_statement = call.starts_with(|first: char| first.is_ascii_lowercase())
        && !["let ", "return", "break", "assert", "debug_assert", "use ", "if ", "match ", "for ", "pub "]
            .iter()
            .any(|word| call.starts_with(word))
        && !call.split('(').next().is_some_and(|head| head.contains('='));
    let names = call.split(['.', ':', ' ']).filter_map(|part| part.split_once('(').map(|(name, _)| name));
    is_statement && names.into_iter().any(|name| STEPS.iter().any(|step| name.starts_with(step)))
}

/// Returns true if the statement begins and ends in this line.
fn is_balanced(text: &str) -> bool {
    let count = |wanted: [char; 2]| text.chars().filter(|c| wanted.contains(c)).count();
    count(['(', '[']) == count([')', ']']) && (text.ends_with('{') || count(['{', '{']) == count(['}', '}']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_locks_and_rechecks_are_found() {
        let source = "fn a() {\n    medium.order();\n    let it = medium.order();\n    self.sync(&self.log)?;\n    let _turn = self.turn.lock();\n    \
                      if word.is_fresh() {\n        return;\n    }\n    if word.is_fresh() {\n        go();\n    }\n    self.retire(\n        x);\n    \
                      medium.order();\n}\n#[cfg(test)]\nmod tests {\n    medium.order();\n}\n";
        let found: Vec<_> =
            in_text(Path::new("f"), source).iter().map(|site| (site.line, site.kind, site.nth)).collect();
        let expected = [
            (1, Kind::LeftOut, 0),
            (3, Kind::LeftOut, 0),
            (4, Kind::NotLocked, 0),
            (5, Kind::NotLookedAt, 0),
            (13, Kind::LeftOut, 1),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn test_only_code_hides_nothing_after_it() {
        let source = "impl A {\n    #[cfg(test)]\n    fn a() {\n        x.order();\n    }\n\n    fn b() {\n        y.order();\n    }\n}\n\
                      #[cfg(test)]\nmod tests;\n\nfn c() {\n    z.order();\n}\n";
        let found: Vec<_> = in_text(Path::new("f"), source).into_iter().map(|site| site.text).collect();
        assert_eq!(found, ["y.order();", "z.order();"]);
    }

    #[test]
    fn switched_line_is_unchanged_without_its_number() {
        let sites = in_text(Path::new("f"), "x.order();\nlet _turn = a.lock();\nif stale && b {\nreturn;\n");
        let switched: Vec<_> =
            sites.iter().map(|site| site.switched().replace(&site.number().to_string(), "7")).collect();
        assert_eq!(
            switched,
            [
                "if !crate::is_mutated(7) { x.order(); }",
                "let _turn = if crate::is_mutated(7) { None } else { Some(a.lock()) };",
                "if !crate::is_mutated(7) && (stale && b) {",
            ]
        );
    }

    #[test]
    fn broken_variant_code_is_no_step() {
        let source = "fn a() {\n    if medium.breaks(canary::TORN) {\n        x.flush();\n        y.order();\n    }\n    \
                      if !medium.breaks(canary::LATE) {\n        z.order();\n    }\n    z.flush();\n}\n\n/// The broken variant.\n#[cold]\nfn b() {\n    \
                      w.order();\n}\n";
        let found: Vec<_> = in_text(Path::new("f"), source).into_iter().map(|site| site.text).collect();
        assert_eq!(found, ["z.order();", "z.flush();"]);
    }
}
