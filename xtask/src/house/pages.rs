//! Checks the links of the pages: each link within the repository leads to an existing file, and the index of decisions
//! links every decision, in the order of their numbers.

use std::fs;
use std::path::Path;

use crate::failure::Failure;
use crate::tree;

const DECISIONS: &str = "docs/decisions/";
const INDEX: &str = "docs/decisions/README.md";

/// Checks all links, and that the index of decisions lists each page once, by number.
pub(super) fn check() -> Result<(), Failure> {
    let pages = tree::files(&["md"])?;
    for page in &pages {
        let text = read(page)?;
        let lost = lost_links(&text, page.parent().unwrap_or(Path::new("")), &|path| path.exists());
        if let Some(link) = lost.first() {
            return Err(format!("{}: {link} leads nowhere", page.display()));
        }
    }
    let mut decisions: Vec<String> = pages.iter().filter_map(|page| decision(page.to_str()?)).collect();
    decisions.sort();
    let listed = listed(&read(Path::new(INDEX))?);
    if let Some(wrong) = first_difference(&decisions, &listed) {
        return Err(format!("{INDEX}: the list differs from the pages in {DECISIONS}, from {wrong} on"));
    }
    println!("{} pages lead where they say, to {} decisions among others", pages.len(), decisions.len());
    Ok(())
}

fn read(page: &Path) -> Result<String, Failure> {
    fs::read_to_string(page).map_err(|error| format!("{}: {error}", page.display()))
}

/// Returns the file name of the decision's page at `path`; `None` for other pages.
fn decision(path: impl AsRef<str>) -> Option<String> {
    let name = path.as_ref().strip_prefix(DECISIONS)?.split('#').next()?;
    name.starts_with(|letter: char| letter.is_ascii_digit()).then(|| name.to_owned())
}

/// Returns the file names of the decisions that the index links, in its order.
fn listed(index: &str) -> Vec<String> {
    links(index).into_iter().filter_map(|link| decision(format!("{DECISIONS}{link}"))).collect()
}

/// Returns the targets of the links in a page, outside of code.
fn links(text: &str) -> Vec<&str> {
    let prose = text.split("```").step_by(2);
    prose
        .flat_map(|prose| prose.split("](").skip(1))
        .filter_map(|rest| rest.split_once(')').map(|(link, _)| link))
        .collect()
}

/// The links to files that are not there, of a page in `dir`.
fn lost_links<'t>(text: &'t str, dir: &Path, is_there: &dyn Fn(&Path) -> bool) -> Vec<&'t str> {
    let is_lost = |link: &&str| {
        let file = link.split('#').next().unwrap_or_default();
        !link.contains("://") && !file.is_empty() && !file.contains(' ') && !is_there(&dir.join(file))
    };
    links(text).into_iter().filter(is_lost).collect()
}

/// Returns the first entry that only one of the lists has.
fn first_difference<'l>(all: &'l [String], listed: &'l [String]) -> Option<&'l str> {
    let same = all.iter().zip(listed).take_while(|(one, other)| one == other).count();
    all.get(same).or(listed.get(same)).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_that_leads_nowhere_is_found() {
        let text = "[a](there.md#part), [b](gone.md), [c](https://x.org), [d](#here)\n```text\n[e](gone too.md)\n```\n[f](gone/f.md)";
        let is_there = |path: &Path| path == Path::new("docs/there.md");
        assert_eq!(lost_links(text, Path::new("docs"), &is_there), ["gone.md", "gone/f.md"]);
    }

    #[test]
    fn incomplete_or_mixed_decision_list_is_found() {
        let names = |numbers: &[&str]| numbers.iter().map(|&number| number.to_owned()).collect::<Vec<_>>();
        let all = names(&["0001-a.md", "0002-b.md", "0003-c.md"]);
        assert_eq!(first_difference(&all, &all), None);
        assert_eq!(first_difference(&all, &names(&["0001-a.md", "0003-c.md"])), Some("0002-b.md"));
        assert_eq!(first_difference(&all, &names(&["0001-a.md", "0002-b.md"])), Some("0003-c.md"));
        assert_eq!(first_difference(&all[..1], &all[..2]), Some("0002-b.md"));
        assert_eq!(decision("docs/decisions/0001-a.md#why"), Some("0001-a.md".to_owned()));
        assert_eq!(decision("docs/decisions/").or(decision("docs/cli.md")), None);
        assert_eq!(
            listed("- [1](0001-a.md), [limits](../limits.md)\n- [3](0003-c.md#why)"),
            names(&["0001-a.md", "0003-c.md"])
        );
    }
}
