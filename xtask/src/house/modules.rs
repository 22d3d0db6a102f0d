//! The modules of a crate: the definitions and re-exports of each.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::slice;

use syn::{Attribute, Expr, ExprLit, Item, ItemMod, ItemUse, Lit, Visibility};

use super::names::{self, Names};
use crate::failure::Failure;
use crate::tree::is_for_tests;

/// A module's path from the crate's root.
pub(super) type ModulePath = Vec<String>;

#[derive(Default)]
struct Module {
    /// Index of its file.
    file: usize,
    defines: BTreeSet<String>,
    /// Names that the module imports, for itself or as re-exports.
    imports: BTreeMap<String, ModulePath>,
    /// Modules whose names the module imports completely.
    globs: Vec<ModulePath>,
    /// Paths that the module names, from the crate's root.
    names: Vec<ModulePath>,
}

/// The modules of a crate; see the module's head.
#[derive(Default)]
pub(super) struct Modules {
    /// Relative to the crate's source.
    pub(super) files: Vec<String>,
    modules: BTreeMap<ModulePath, Module>,
}

impl Modules {
    /// Reads the modules of the crate with this root file.
    pub(super) fn of(root: &Path) -> Result<Modules, Failure> {
        let folder = root.parent().expect("a file lies in a folder").to_owned();
        let mut modules = Modules::default();
        modules.read_file(root, &folder, &folder, Vec::new())?;
        Ok(modules)
    }

    fn read_file(&mut self, file: &Path, folder: &Path, source: &Path, path: ModulePath) -> Result<(), Failure> {
        let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let parsed = syn::parse_file(&text).map_err(|error| format!("{}: {error}", file.display()))?;
        self.files.push(file.strip_prefix(source).unwrap_or(file).display().to_string());
        self.read_items(&parsed.items, self.files.len() - 1, folder, source, path)
    }

    fn read_items(
        &mut self,
        items: &[Item],
        file: usize,
        folder: &Path,
        source: &Path,
        path: ModulePath,
    ) -> Result<(), Failure> {
        let children: BTreeSet<String> = items
            .iter()
            .filter_map(|item| match item {
                Item::Mod(child) => Some(child.ident.to_string()),
                _ => None,
            })
            .collect();
        let mut module = Module { file, ..Module::default() };
        let items = || items.iter().filter(|item| !names::attributes(item).iter().any(is_for_tests));
        for item in items() {
            module.take(item, &path, &children);
        }
        self.modules.insert(path.clone(), module);
        for item in items() {
            if let Item::Mod(child) = item {
                self.read_child(child, file, folder, source, &path)?;
            }
        }
        Ok(())
    }

    fn read_child(
        &mut self,
        child: &ItemMod,
        file: usize,
        folder: &Path,
        source: &Path,
        parent: &ModulePath,
    ) -> Result<(), Failure> {
        let name = child.ident.to_string();
        let (inner, path) = (folder.join(&name), [parent.as_slice(), slice::from_ref(&name)].concat());
        match &child.content {
            Some((_, items)) => self.read_items(items, file, &inner, source, path),
            None => {
                let (file, folder) = place_of(child, folder, inner);
                self.read_file(&file, &folder, source, path)
            }
        }
    }

    /// Returns each pair of a file and a file that it uses, once. Files of broken variants are left out, like tests:
    /// no reader of the product needs them.
    pub(super) fn arrows(&self) -> Vec<(String, String)> {
        let mut arrows = BTreeSet::new();
        for module in self.modules.values() {
            for name in &module.names {
                let used = self.modules[&self.definer(name, 0)].file;
                let (from, to) = (&self.files[module.file], &self.files[used]);
                if used != module.file && !is_of_broken_variants(from) && !is_of_broken_variants(to) {
                    arrows.insert((from.clone(), to.clone()));
                }
            }
        }
        arrows.into_iter().collect()
    }

    /// Finds the module that defines `name`, as far as re-exports can be followed.
    fn definer(&self, name: &[String], depth: usize) -> ModulePath {
        /// Re-export chains are short; this limit ends a cycle of globs.
        const DEPTH_MAX: usize = 16;
        let mut at = ModulePath::new();
        for (place, segment) in name.iter().enumerate() {
            let inner = [at.as_slice(), slice::from_ref(segment)].concat();
            if self.modules.contains_key(&inner) {
                at = inner;
                continue;
            }
            let Some(module) = self.modules.get(&at).filter(|module| !module.defines.contains(segment)) else { break };
            let rest = &name[place + 1..];
            if depth < DEPTH_MAX
                && let Some(target) = module.imports.get(segment)
            {
                return self.definer(&[target.as_slice(), rest].concat(), depth + 1);
            }
            let has_it = |glob: &&ModulePath| self.has(glob, segment);
            if depth < DEPTH_MAX
                && let Some(glob) = module.globs.iter().find(has_it)
            {
                return self.definer(&[glob.as_slice(), slice::from_ref(segment), rest].concat(), depth + 1);
            }
            break;
        }
        at
    }

    fn has(&self, glob: &ModulePath, name: &str) -> bool {
        self.modules.get(glob).is_some_and(|module| module.defines.contains(name) || module.imports.contains_key(name))
    }
}

impl Module {
    fn take(&mut self, item: &Item, path: &ModulePath, children: &BTreeSet<String>) {
        self.defines.extend(names::defined(item));
        if let Item::Use(import) = item {
            self.take_import(import, path, children);
        } else if !matches!(item, Item::Mod(_)) {
            let mut found = Names::new(path, children);
            found.read(item);
            self.names.append(&mut found.found);
        }
    }

    fn take_import(&mut self, import: &ItemUse, path: &ModulePath, children: &BTreeSet<String>) {
        let hands_on = !matches!(import.vis, Visibility::Inherited);
        for (name, target) in names::imported(&import.tree, path, children) {
            if !hands_on {
                self.names.push(target.clone());
            }
            match name {
                Some(name) => _ = self.imports.insert(name, target),
                None => self.globs.push(target),
            }
        }
    }
}

/// Returns the file of a declared module, and the folder of the modules that it declares.
fn place_of(child: &ItemMod, folder: &Path, inner: PathBuf) -> (PathBuf, PathBuf) {
    if let Some(said) = child.attrs.iter().find_map(said_path) {
        return (folder.join(said), folder.to_owned());
    }
    let beside = inner.with_extension("rs");
    (if beside.is_file() { beside } else { inner.join("mod.rs") }, inner)
}

/// Returns the path in `#[path = "…"]`.
fn said_path(attribute: &Attribute) -> Option<String> {
    let said = attribute.path().is_ident("path").then(|| attribute.meta.require_name_value().ok())??;
    match &said.value {
        Expr::Lit(ExprLit { lit: Lit::Str(path), .. }) => Some(path.value()),
        _ => None,
    }
}

/// Returns true for the file with a crate's broken variants, which checkers must catch.
fn is_of_broken_variants(file: &str) -> bool {
    Path::new(file).ends_with("broken.rs")
}
