//! Finds the dependencies among crates and among the files of each crate, and their cycles.
//!
//! A file depends on another if it names an item that is defined there, directly or through re-exports. Files that
//! only re-export (`pub use`), tests, broken variants, and names inside macros do not count.

mod crates;
mod modules;
mod names;
mod pages;
mod sizes;

use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;

use crate::failure::Failure;
use crates::{Package, packages};
use modules::Modules;

/// Maximum number of files in a cycle, which a reader can still keep in mind.
const CIRCLE_MAX: usize = 5;

/// Files of a package that use each other in a cycle.
type Circle = Vec<String>;

/// Prints the dependencies.
pub(crate) fn show() -> Result<(), Failure> {
    let packages = packages()?;
    for Package { name, floor, uses, .. } in &packages {
        println!("level {floor}  {name} -> {}", uses.join(" "));
    }
    for package in &packages {
        let modules = Modules::of(&package.root)?;
        let arrows = modules.arrows();
        let circles = circles(&arrows);
        println!(
            "\n{}: {} files, {} dependencies, {} cycles",
            package.name,
            modules.files.len(),
            arrows.len(),
            circles.len()
        );
        for circle in circles {
            println!("  cycle of {}: {}", circle.len(), circle.join(" "));
        }
        for (from, to) in arrows {
            println!("  {from} -> {to}");
        }
    }
    Ok(())
}

/// Checks the links of the pages, and the sizes of cycles, files, comments and types.
pub(crate) fn check() -> Result<(), Failure> {
    pages::check()?;
    sizes::check()?;
    for package in packages()? {
        let largest =
            circles(&Modules::of(&package.root)?.arrows()).into_iter().max_by_key(Vec::len).unwrap_or_default();
        if largest.len() > CIRCLE_MAX {
            let files = largest.join(" ");
            return Err(format!(
                "{}: a cycle of {} files (at most {CIRCLE_MAX} are allowed): {files}",
                package.name,
                largest.len()
            ));
        }
    }
    println!("no cycle of files is too large");
    Ok(())
}

/// Finds the cycles, largest first.
fn circles(arrows: &[(String, String)]) -> Vec<Circle> {
    let graph: DiGraphMap<&str, ()> = arrows.iter().map(|(from, to)| (from.as_str(), to.as_str())).collect();
    let circles = tarjan_scc(&graph).into_iter().filter(|files| files.len() > 1);
    let mut circles: Vec<Circle> = circles.map(|files| files.into_iter().map(str::to_owned).collect()).collect();
    circles.iter_mut().for_each(|files| files.sort());
    circles.sort_by_key(|files| std::cmp::Reverse(files.len()));
    circles
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrows(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|&(from, to)| (from.into(), to.into())).collect()
    }

    #[test]
    fn circle_is_what_leads_back() {
        let arrows = arrows(&[("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("e", "a"), ("f", "g"), ("g", "f")]);
        assert_eq!(circles(&arrows), [vec!["a", "b", "c"], vec!["f", "g"]]);
    }
}
