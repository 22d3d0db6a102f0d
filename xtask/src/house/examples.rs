//! Checks that each public function of the library is shown: it occurs in an example of the documentation, in a program
//! of `examples/`, in the README or in the page of the library.

use std::fs;
use std::path::Path;

use syn::visit::Visit;
use syn::{Attribute, ImplItemFn, ItemFn, Meta, Visibility};

use crate::failure::Failure;
use crate::tree;

const LIBRARY: &str = "crates/hikv/src/";
const PROGRAMS: &str = "crates/hikv/examples/";
const PAGES: [&str; 2] = ["README.md", "docs/library.md"];
/// The bytes of a dump's parts: `docs/format/dump.md` shows them, and tests compare them.
const FORMATS: &str = "crates/hikv/src/dump/layout.rs";

/// Checks all public functions.
pub(super) fn check() -> Result<(), Failure> {
    let (mut names, mut shown) = (Names::default(), String::new());
    for path in tree::files(&["rs", "md"])? {
        let name = path.to_str().ok_or("a path is not UTF-8")?;
        if name.starts_with(LIBRARY) {
            let text = read(&path)?;
            shown += &examples(&text);
            if name != FORMATS {
                names.visit_file(&syn::parse_file(&text).map_err(|error| format!("{name}: {error}"))?);
            }
        } else if name.starts_with(PROGRAMS) || PAGES.contains(&name) {
            shown += &read(&path)?;
        }
    }
    let hidden: Vec<&str> = names.0.iter().map(String::as_str).filter(|name| !is_used(&shown, name)).collect();
    if !hidden.is_empty() {
        return Err(format!("no example shows these functions of the library: {}", hidden.join(" ")));
    }
    println!("examples show {} public functions of the library", names.0.len());
    Ok(())
}

fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Returns the code in the documentation of a file.
fn examples(text: &str) -> String {
    let lines = text.lines().map(str::trim_start).filter(|line| line.starts_with("///") || line.starts_with("//!"));
    let documentation: Vec<&str> = lines.map(|line| &line[3..]).collect();
    documentation.join("\n").split("```").skip(1).step_by(2).collect()
}

/// Returns true if a text calls a function of this name, or passes it on.
fn is_used(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let (before, behind) = (&text[..at], &text[at + name.len()..]);
        let is_path = before.ends_with("::") && !behind.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        let is_call = !before.ends_with(|c: char| c.is_alphanumeric() || c == '_') && !before.ends_with("fn ");
        is_path || is_call && (behind.starts_with('(') || behind.starts_with("::<"))
    })
}

/// The names of public functions that the documentation lists.
#[derive(Default)]
struct Names(Vec<String>);

impl Names {
    fn add(&mut self, visibility: &Visibility, attributes: &[Attribute], name: String) {
        if matches!(visibility, Visibility::Public(_)) && !attributes.iter().any(is_hidden) {
            self.0.push(name);
        }
    }
}

impl<'a> Visit<'a> for Names {
    fn visit_item_fn(&mut self, function: &'a ItemFn) {
        self.add(&function.vis, &function.attrs, function.sig.ident.to_string());
    }

    fn visit_impl_item_fn(&mut self, function: &'a ImplItemFn) {
        self.add(&function.vis, &function.attrs, function.sig.ident.to_string());
    }
}

/// Returns true for the attribute `#[doc(hidden)]`.
fn is_hidden(attribute: &Attribute) -> bool {
    matches!(&attribute.meta, Meta::List(list) if list.path.is_ident("doc") && list.tokens.to_string() == "hidden")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_without_an_example_are_found() {
        let text = "/// ```\n/// store.put(1);\n/// map(Store::get)\n/// ```\npub fn delete() {}\n#[doc(hidden)]\npub fn raw() {}";
        let mut names = Names::default();
        names.visit_file(&syn::parse_file(text).expect("it is Rust"));
        assert_eq!(names.0, ["delete"]);
        let shown = examples(text);
        assert!(is_used(&shown, "put") && is_used(&shown, "get"));
        assert!(!is_used(&shown, "pu") && !is_used(&shown, "ut") && !is_used(&shown, "delete"));
    }
}
