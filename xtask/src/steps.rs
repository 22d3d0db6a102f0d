//! Keeps the steps of protocols in docs/durability.md equal to those in the modules' heads.
//!
//! The steps of a protocol are written once, in the head of the module that carries them out. `docs/durability.md`
//! has copies, each between two marks:
//!
//! ```text
//! <!-- steps: crates/heap/src/chunks.rs, A chunk at the mark -->
//! <!-- end of steps -->
//! ```
//!
//! A copy is the first table or numbered list after that heading, or after the beginning of the head if no heading is
//! named. `write` updates the copies; `check` fails if one differs.

use std::fs;
use std::path::Path;

use crate::failure::Failure;

const PAGE: &str = "docs/durability.md";
const MARK: &str = "<!-- steps: ";
const END: &str = "<!-- end of steps -->";

/// Updates the copies in the page.
pub(crate) fn write() -> Result<(), Failure> {
    let page = read(PAGE)?;
    let (renewed, count) = renewed(&page, &|path| read(path))?;
    fs::write(PAGE, renewed).map_err(|error| format!("{PAGE}: {error}"))?;
    println!("{PAGE} has the steps of {count} protocols");
    Ok(())
}

/// Returns an error if a copy in the page differs from its module.
pub(crate) fn check() -> Result<(), Failure> {
    let page = read(PAGE)?;
    let (renewed, count) = renewed(&page, &|path| read(path))?;
    if renewed != page {
        let line = page.lines().zip(renewed.lines()).take_while(|(is, should)| is == should).count() + 1;
        return Err(format!("{PAGE}:{line}: differs from the module's head; run cargo xtask steps write"));
    }
    println!("{PAGE} has the steps of {count} protocols as in the modules' heads");
    Ok(())
}

fn read(path: &str) -> Result<String, Failure> {
    fs::read_to_string(Path::new(path)).map_err(|error| format!("{path}: {error}"))
}

/// Returns the page with new copies, and their number.
fn renewed(page: &str, source: &dyn Fn(&str) -> Result<String, Failure>) -> Result<(String, usize), Failure> {
    let (mut out, mut count) = (String::new(), 0);
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        out.push_str(line);
        out.push('\n');
        let Some(named) = line.strip_prefix(MARK).and_then(|rest| rest.strip_suffix(" -->")) else { continue };
        if !lines.any(|line| line == END) {
            return Err(format!("{PAGE}: no '{END}' after '{line}'"));
        }
        let (path, heading) = named.split_once(", ").unwrap_or((named, ""));
        let steps = steps_of(&source(path)?, heading).ok_or_else(|| format!("{path}: no steps under '{heading}'"))?;
        out.push_str(&format!("\n{steps}\n{END}\n"));
        count += 1;
    }
    if count == 0 {
        return Err(format!("{PAGE}: no '{MARK}'"));
    }
    Ok((out, count))
}

/// Returns the first table or numbered list after `heading` in a module's head.
fn steps_of(source: &str, heading: &str) -> Option<String> {
    let mut head =
        source.lines().map_while(|line| line.strip_prefix("//!")).map(|line| line.strip_prefix(' ').unwrap_or(line));
    if !heading.is_empty() {
        head.find(|line| line.strip_prefix("# ") == Some(heading))?;
    }
    let mut section = head
        .take_while(|line| !line.starts_with("# "))
        .skip_while(|line| !line.starts_with('|') && !is_numbered(line))
        .peekable();
    let is_table = section.peek()?.starts_with('|');
    let steps = section.take_while(|line| if is_table { line.starts_with('|') } else { !line.is_empty() });
    Some(steps.map(|line| unlinked(line) + "\n").collect())
}

fn is_numbered(line: &str) -> bool {
    line.split_once(". ")
        .is_some_and(|(number, _)| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns `line` without links that only rustdoc can follow.
fn unlinked(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some((before, linked)) = rest.split_once("[`") {
        let Some((name, after)) = linked.split_once("`]") else { break };
        out.push_str(&format!("{before}`{name}`"));
        rest = match after.strip_prefix('(').and_then(|target| target.split_once(')')) {
            Some((_, after)) => after,
            None => after,
        };
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "//! A head. 1 is no list.\n//!\n//! # Closing\n//! Words.\n//! 1. One, see [`Heap`](crate::Heap).\n//!    More of it.\n//! 2. Two\n//!\n//! | a | b |\n//!\n//! # Opening\n//! | step | leaves |\n//! |---|---|\nuse x;\n//! | not | this |\n";

    fn page(steps: &str) -> String {
        format!("Before\n<!-- steps: a.rs, Closing -->\n{steps}<!-- end of steps -->\nAfter\n")
    }

    fn of(page: &str) -> Result<(String, usize), Failure> {
        renewed(page, &|_| Ok(SOURCE.to_owned()))
    }

    #[test]
    fn list_is_copied_whole_and_without_links() {
        let steps = "\n1. One, see `Heap`.\n   More of it.\n2. Two\n\n";
        assert_eq!(of(&page("old\n")).unwrap(), (page(steps), 1));
        assert_eq!(of(&page(steps)).unwrap(), (page(steps), 1));
    }

    #[test]
    fn table_is_found_by_its_heading() {
        assert_eq!(steps_of(SOURCE, "Opening").unwrap(), "| step | leaves |\n|---|---|\n");
        assert_eq!(steps_of(SOURCE, ""), None);
        assert_eq!(steps_of(SOURCE, "Clearing"), None);
    }

    #[test]
    fn missing_is_reported() {
        assert!(of("nothing\n").unwrap_err().contains("no '<!-- steps: '"));
        assert!(of("<!-- steps: a.rs -->\nno end\n").unwrap_err().contains("after"));
        assert!(
            of("<!-- steps: a.rs, Nowhere -->\n<!-- end of steps -->\n")
                .unwrap_err()
                .contains("a.rs: no steps under 'Nowhere'")
        );
    }
}
