//! Checks that the project's prose keeps to the rules for plain English in `CONTRIBUTING.md`.
//!
//! Pages, comments, and the texts that programs print are read ([`text`]). Habits of unclear prose are counted
//! ([`habits`]) for each page at the root, for `docs`, and for each crate; a count above its limit fails the check and
//! prints the places. Places that cannot be written otherwise stand in `allowed.txt`, each with its reason.

mod allowed;
mod habits;
mod text;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::failure::Failure;
use crate::tree;
use allowed::Allowed;
use habits::{HABITS, Habit};
use text::Line;

/// Limits are counts in so many words.
const UNIT_WORDS: usize = 10_000;

/// The prose of one page at the root, of `docs`, or of one crate.
#[derive(Default)]
struct Group {
    words: usize,
    doc_lines: usize,
    /// The places of each habit.
    places: BTreeMap<&'static str, Vec<String>>,
}

/// Prints the places of each habit that a group has too many of.
///
/// # Errors
/// If there is one, if an entry of `allowed.txt` matches nothing, or if a file cannot be read.
pub(crate) fn check() -> Result<(), Failure> {
    let mut allowed = Allowed::read()?;
    let mut groups = BTreeMap::<String, Group>::new();
    for path in tree::files(&["md", "rs"])? {
        let source = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let group = groups.entry(group_of(&path)).or_default();
        for line in text::lines(&path, &source)? {
            group.take(&path, &line, &mut allowed);
        }
    }
    let mut count = 0;
    for (name, group) in &groups {
        for habit in HABITS.iter() {
            count += usize::from(!group.keeps(name, habit));
        }
    }
    allowed.all_used()?;
    if count > 0 {
        return Err(format!(
            "{count} habits above their limits: CONTRIBUTING.md, 'Plain English', says how to write instead"
        ));
    }
    let words: usize = groups.values().map(|group| group.words).sum();
    println!("{words} words keep to the rules for plain English");
    Ok(())
}

impl Group {
    fn take(&mut self, path: &Path, line: &Line, allowed: &mut Allowed) {
        self.words += line.text.split_whitespace().count();
        self.doc_lines += usize::from(line.is_doc_comment);
        for habit in HABITS.iter() {
            for _ in 0..habit.count(line) {
                if !allowed.allows(path, habit.name, &line.text) {
                    let place = format!("{}:{}: {}: {}", path.display(), line.number, habit.name, line.text.trim());
                    self.places.entry(habit.name).or_default().push(place);
                }
            }
        }
    }

    fn keeps(&self, name: &str, habit: &Habit) -> bool {
        let places = self.places.get(habit.name).map_or(&[][..], Vec::as_slice);
        let size = if habit.is_of_doc_lines() { self.doc_lines } else { self.words };
        let count_max = (size * habit.count_max).div_ceil(UNIT_WORDS);
        if places.len() <= count_max {
            return true;
        }
        println!("{name}: {} of '{}', at most {count_max}:", places.len(), habit.name);
        places.iter().for_each(|place| println!("  {place}"));
        false
    }
}

/// A page at the root by its name, a crate by its folder, all else by its first folder.
fn group_of(path: &Path) -> String {
    let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let depth = match parts[0].as_str() {
        "crates" if parts[1] == "engines" => 3,
        "bench" | "crates" | "frontends" | "testing" => 2,
        _ => 1,
    };
    parts[..depth.min(parts.len())].join("/")
}
