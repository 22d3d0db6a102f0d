//! The house as it stands: which crate stands on which, which file of a crate uses which, and the circles among them.
//!
//! A file uses another by naming something that is defined there, through whatever it is handed on. What only hands names
//! on (`pub use`), tests, and what macros name are left out.

mod crates;
mod modules;
mod names;
mod pages;

use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;

use crate::failure::Failure;
use crates::{Package, packages};
use modules::Modules;

/// Files of one circle that a reader can still hold in mind.
const CIRCLE_MAX: usize = 8;

/// The files of a package that use each other in a circle.
type Circle = Vec<String>;

/// Prints the house.
pub(crate) fn show() -> Result<(), Failure> {
    let packages = packages()?;
    for Package { name, floor, uses, .. } in &packages {
        println!("floor {floor}  {name} -> {}", uses.join(" "));
    }
    for package in &packages {
        let modules = Modules::of(&package.root)?;
        let arrows = modules.arrows();
        let circles = circles(&arrows);
        println!(
            "\n{}: {} files, {} arrows, {} circles",
            package.name,
            modules.files.len(),
            arrows.len(),
            circles.len()
        );
        for circle in circles {
            println!("  circle of {}: {}", circle.len(), circle.join(" "));
        }
        for (from, to) in arrows {
            println!("  {from} -> {to}");
        }
    }
    Ok(())
}

/// Whether no circle is larger than it may be, and the pages lead where they say.
pub(crate) fn check() -> Result<(), Failure> {
    pages::check()?;
    for package in packages()? {
        let largest =
            circles(&Modules::of(&package.root)?.arrows()).into_iter().max_by_key(Vec::len).unwrap_or_default();
        if largest.len() > CIRCLE_MAX {
            let files = largest.join(" ");
            return Err(format!(
                "{}: a circle of {} files, of {CIRCLE_MAX} at most: {files}",
                package.name,
                largest.len()
            ));
        }
    }
    println!("no circle of files is larger than it may be");
    Ok(())
}

/// The largest first.
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
