//! Places that may have a habit, from `allowed.txt`: one line each, `path | habit | part of the text | reason`.

use std::path::Path;

use crate::failure::Failure;

const FILE: &str = "xtask/src/prose/allowed.txt";
const LIST: &str = include_str!("allowed.txt");

struct Entry {
    path: String,
    habit: String,
    text: String,
    is_used: bool,
}

/// The entries of the list.
pub(super) struct Allowed(Vec<Entry>);

impl Allowed {
    /// Reads the list.
    ///
    /// # Errors
    /// If a line has not four parts: an entry needs its reason.
    pub(super) fn read() -> Result<Allowed, Failure> {
        Allowed::parse(LIST)
    }

    fn parse(list: &str) -> Result<Allowed, Failure> {
        let lines = list.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let entry = |line: &str| {
            let parts: Vec<_> = line.split('|').map(str::trim).collect();
            let [path, habit, text, reason] = parts[..] else { return Err(format!("{FILE}: not four parts: {line}")) };
            if reason.is_empty() {
                return Err(format!("{FILE}: no reason: {line}"));
            }
            Ok(Entry { path: path.into(), habit: habit.into(), text: text.into(), is_used: false })
        };
        lines.map(entry).collect::<Result<_, _>>().map(Allowed)
    }

    /// Returns true if the list has an entry for this habit in this line.
    pub(super) fn allows(&mut self, path: &Path, habit: &str, text: &str) -> bool {
        let fits =
            |entry: &&mut Entry| path == Path::new(&entry.path) && entry.habit == habit && text.contains(&entry.text);
        self.0.iter_mut().find(fits).map(|entry| entry.is_used = true).is_some()
    }

    /// Checks that each entry was used.
    ///
    /// # Errors
    /// Names an entry that allows nothing any more.
    pub(super) fn all_used(&self) -> Result<(), Failure> {
        match self.0.iter().find(|entry| !entry.is_used) {
            Some(Entry { path, habit, text, .. }) => Err(format!("{FILE}: allows nothing: {path} | {habit} | {text}")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_need_reasons_and_uses() {
        assert!(Allowed::parse("a.md | tell | told").is_err());
        assert!(Allowed::parse("a.md | tell | told | ").is_err());
        let mut allowed = Allowed::parse("# a list\n\na.md | tell | told of | a quotation\n").expect("a list");
        assert!(!allowed.allows(Path::new("b.md"), "tell", "told of"));
        assert!(!allowed.allows(Path::new("a.md"), "tell", "told"));
        assert!(allowed.all_used().is_err());
        assert!(allowed.allows(Path::new("a.md"), "tell", "it is told of it"));
        assert!(allowed.all_used().is_ok());
    }
}
