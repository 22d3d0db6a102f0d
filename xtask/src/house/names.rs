//! The names in an item: definitions, imports and written paths.

use std::collections::BTreeSet;

use syn::visit::Visit;
use syn::{Attribute, Ident, Item, UseTree};

use super::modules::ModulePath;

/// Returns the name that an item defines in its module, if other modules can read it, and the item's attributes.
fn head(item: &Item) -> (Option<&Ident>, &[Attribute]) {
    match item {
        Item::Const(item) => (Some(&item.ident), &item.attrs),
        Item::Enum(item) => (Some(&item.ident), &item.attrs),
        Item::Fn(item) => (Some(&item.sig.ident), &item.attrs),
        Item::Impl(item) => (None, &item.attrs),
        Item::Macro(item) => (item.ident.as_ref(), &item.attrs),
        Item::Mod(item) => (None, &item.attrs),
        Item::Static(item) => (Some(&item.ident), &item.attrs),
        Item::Struct(item) => (Some(&item.ident), &item.attrs),
        Item::Trait(item) => (Some(&item.ident), &item.attrs),
        Item::TraitAlias(item) => (Some(&item.ident), &item.attrs),
        Item::Type(item) => (Some(&item.ident), &item.attrs),
        Item::Union(item) => (Some(&item.ident), &item.attrs),
        Item::Use(item) => (None, &item.attrs),
        _ => (None, &[]),
    }
}

/// Returns the name of an item that is neither a module nor an import.
pub(super) fn defined(item: &Item) -> Option<String> {
    head(item).0.map(Ident::to_string)
}

/// Returns an item's attributes, which may restrict it to tests.
pub(super) fn attributes(item: &Item) -> &[Attribute] {
    head(item).1
}

/// Lists the imports of a `use`: names with their paths from the crate's root, without a name for a glob.
pub(super) fn imported(
    tree: &UseTree,
    here: &ModulePath,
    children: &BTreeSet<String>,
) -> Vec<(Option<String>, ModulePath)> {
    let mut found = Vec::new();
    flatten(tree, Vec::new(), &mut found);
    found.into_iter().filter_map(|(name, path)| Some((name, from_root(&path, here, children)?))).collect()
}

fn flatten(tree: &UseTree, mut before: Vec<String>, found: &mut Vec<(Option<String>, Vec<String>)>) {
    match tree {
        UseTree::Path(path) => {
            before.push(path.ident.to_string());
            flatten(&path.tree, before, found);
        }
        UseTree::Group(group) => group.items.iter().for_each(|tree| flatten(tree, before.clone(), found)),
        UseTree::Glob(_) => found.push((None, before)),
        UseTree::Name(name) if name.ident == "self" => found.push((before.last().cloned(), before)),
        UseTree::Name(name) => {
            before.push(name.ident.to_string());
            found.push((before.last().cloned(), before));
        }
        UseTree::Rename(name) => {
            if name.ident != "self" {
                before.push(name.ident.to_string());
            }
            found.push((Some(name.rename.to_string()), before));
        }
    }
}

/// Resolves a path written in the module `here` from the crate's root; `None` if it leads out of the crate.
fn from_root(path: &[String], here: &ModulePath, children: &BTreeSet<String>) -> Option<ModulePath> {
    let (first, rest) = path.split_first()?;
    match first.as_str() {
        "crate" => Some(rest.to_vec()),
        "self" => Some([here.as_slice(), rest].concat()),
        "super" => {
            let (_, parent) = here.split_last()?;
            match rest.first().map(String::as_str) {
                Some("super") => from_root(rest, &parent.to_vec(), children),
                _ => Some([parent, rest].concat()),
            }
        }
        child if children.contains(child) => Some([here.as_slice(), path].concat()),
        _ => None,
    }
}

/// Collects the paths that an item names.
pub(super) struct Names<'a> {
    here: &'a ModulePath,
    children: &'a BTreeSet<String>,
    pub(super) found: Vec<ModulePath>,
}

impl<'a> Names<'a> {
    pub(super) fn new(here: &'a ModulePath, children: &'a BTreeSet<String>) -> Names<'a> {
        Names { here, children, found: Vec::new() }
    }

    pub(super) fn read(&mut self, item: &Item) {
        self.visit_item(item);
    }
}

impl<'ast> Visit<'ast> for Names<'_> {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        let written: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.found.extend(from_root(&written, self.here, self.children));
        syn::visit::visit_path(self, path);
    }

    /// `pub(crate)` names no item that is used.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_item_use(&mut self, import: &'ast syn::ItemUse) {
        self.found.extend(imported(&import.tree, self.here, self.children).into_iter().map(|(_, path)| path));
    }
}
