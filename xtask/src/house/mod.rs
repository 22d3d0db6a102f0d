//! Finds the dependencies among crates and among the files of each crate, and their cycles.
//!
//! A file depends on another if it names an item that is defined there, directly or through re-exports. Files that
//! only re-export (`pub use`), tests, broken variants, and names inside macros do not count.

mod crates;
mod examples;
mod modules;
mod names;
mod pages;
mod sizes;
mod test_names;

use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;

use crate::failure::Failure;
use crates::{Package, packages};
use modules::Modules;

/// Maximum number of files in a cycle, which a reader can still keep in mind.
const CYCLE_FILES_MAX: usize = 5;

/// Files of a package that use each other in a cycle.
type Cycle = Vec<String>;

/// Prints the dependencies.
pub(crate) fn show() -> Result<(), Failure> {
    let packages = packages()?;
    for Package { name, floor, uses, .. } in &packages {
        println!("level {floor}  {name} -> {}", uses.join(" "));
    }
    for package in &packages {
        let modules = Modules::of(&package.root)?;
        let arrows = modules.arrows();
        let cycles = cycles(&arrows);
        println!(
            "\n{}: {} files, {} dependencies, {} cycles",
            package.name,
            modules.files.len(),
            arrows.len(),
            cycles.len()
        );
        for cycle in cycles {
            println!("  cycle of {}: {}", cycle.len(), cycle.join(" "));
        }
        for (from, to) in arrows {
            println!("  {from} -> {to}");
        }
    }
    Ok(())
}

/// Checks the links of the pages, the examples of the library, and sizes: of cycles, files, comments, types and
/// names of tests.
pub(crate) fn check() -> Result<(), Failure> {
    pages::check()?;
    examples::check()?;
    sizes::check()?;
    test_names::check()?;
    for package in packages()? {
        let largest =
            cycles(&Modules::of(&package.root)?.arrows()).into_iter().max_by_key(Vec::len).unwrap_or_default();
        if largest.len() > CYCLE_FILES_MAX {
            let files = largest.join(" ");
            return Err(format!(
                "{}: a cycle of {} files (at most {CYCLE_FILES_MAX} are allowed): {files}",
                package.name,
                largest.len()
            ));
        }
    }
    println!("no cycle of files is too large");
    Ok(())
}

/// Finds the cycles, largest first.
fn cycles(arrows: &[(String, String)]) -> Vec<Cycle> {
    let graph: DiGraphMap<&str, ()> = arrows.iter().map(|(from, to)| (from.as_str(), to.as_str())).collect();
    let cycles = tarjan_scc(&graph).into_iter().filter(|files| files.len() > 1);
    let mut cycles: Vec<Cycle> = cycles.map(|files| files.into_iter().map(str::to_owned).collect()).collect();
    cycles.iter_mut().for_each(|files| files.sort());
    cycles.sort_by_key(|files| std::cmp::Reverse(files.len()));
    cycles
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrows(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|&(from, to)| (from.into(), to.into())).collect()
    }

    #[test]
    fn cycles_are_found() {
        let arrows = arrows(&[("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("e", "a"), ("f", "g"), ("g", "f")]);
        assert_eq!(cycles(&arrows), [vec!["a", "b", "c"], vec!["f", "g"]]);
    }
}
