//! Limits on sizes: lines of a file, columns of a comment, and methods of a type.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::{File, ImplItem, Item, ItemImpl, Type};

use crate::failure::Failure;
use crate::tree;

const FILE_LINES_MAX: usize = 400;
const COMMENT_COLUMNS_MAX: usize = 120;
const METHODS_MAX: usize = 40;
const IMPL_FILES_MAX: usize = 5;

/// The inherent methods of a type, and the files of its `impl` blocks.
#[derive(Default)]
struct Size {
    methods: usize,
    files: BTreeSet<PathBuf>,
}

/// Checks all sources.
///
/// # Errors
/// If a file, a comment or a type is too large; all are printed first.
pub(super) fn check() -> Result<(), Failure> {
    let (mut types, mut count) = (BTreeMap::new(), 0);
    for path in tree::files(&["rs"])? {
        let source = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        for problem in problems(&source) {
            println!("{}{problem}", path.display());
            count += 1;
        }
        if !tree::is_test(&path) {
            let file = syn::parse_file(&source).map_err(|error| format!("{}: {error}", path.display()))?;
            measure(&path, &file, &mut types);
        }
    }
    for (name, size) in &types {
        if let Some(problem) = too_large(name, size) {
            println!("{problem}");
            count += 1;
        }
    }
    if count > 0 {
        return Err(format!("{count} sizes above their limits (xtask/src/house/sizes.rs)"));
    }
    println!("files, comments and types keep to their sizes");
    Ok(())
}

/// The lines of a source that are too many or too long.
fn problems(source: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let count = source.lines().count();
    if count > FILE_LINES_MAX {
        problems.push(format!(": {count} lines, at most {FILE_LINES_MAX}"));
    }
    for (at, line) in source.lines().enumerate() {
        let columns = line.chars().count();
        if columns > COMMENT_COLUMNS_MAX && is_breakable_comment(line) {
            problems.push(format!(":{}: a comment of {columns} columns, at most {COMMENT_COLUMNS_MAX}", at + 1));
        }
    }
    problems
}

/// Returns true for a comment that can be broken: not for rows of tables, links and single names.
fn is_breakable_comment(line: &str) -> bool {
    let Some(text) = line.trim_start().strip_prefix("//") else { return false };
    let text = text.trim_start_matches(['/', '!']).trim_start();
    !text.starts_with('|') && text.split_whitespace().count() > 2
}

/// Adds the inherent methods of a file's types, without its tests.
fn measure(path: &Path, file: &File, types: &mut BTreeMap<String, Size>) {
    for item in &file.items {
        let Item::Impl(ItemImpl { trait_: None, self_ty, items, attrs, .. }) = item else { continue };
        if attrs.iter().any(tree::is_for_tests) {
            continue;
        }
        let Type::Path(kind) = &**self_ty else { continue };
        let Some(name) = kind.path.segments.last() else { continue };
        let size = types.entry(format!("{}::{}", crate_of(path), name.ident)).or_default();
        size.methods += items.iter().filter(|item| matches!(item, ImplItem::Fn(_))).count();
        size.files.insert(path.to_owned());
    }
}

/// A sentence about a type that is larger than the limits.
fn too_large(name: &str, size: &Size) -> Option<String> {
    let (methods, files) = (size.methods, size.files.len());
    (methods > METHODS_MAX || files > IMPL_FILES_MAX)
        .then(|| format!("{name}: {methods} methods in {files} files, at most {METHODS_MAX} in {IMPL_FILES_MAX}"))
}

/// The crate's folder.
fn crate_of(path: &Path) -> String {
    let parts = path.iter().map(|part| part.to_string_lossy().into_owned());
    parts.take_while(|part| part != "src").collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_files_and_comments_are_found() {
        assert!(problems(&"fn a() {}\n".repeat(FILE_LINES_MAX)).is_empty());
        assert_eq!(problems(&"fn a() {}\n".repeat(FILE_LINES_MAX + 1)).len(), 1);
        let words = "word ".repeat(30);
        assert_eq!(problems(&format!("    /// {words}\n")).len(), 1);
        assert!(problems(&format!("let words = \"{words}\";\n/// | {words} |\n")).is_empty());
    }

    #[test]
    fn large_types_are_found() {
        let source = "struct A; impl A { fn a() {} fn b() {} } impl Drop for A { fn drop(&mut self) {} } \
                      #[cfg(test)] impl A { fn c() {} }";
        let mut types = BTreeMap::new();
        for file in ["crates/a/src/one.rs", "crates/a/src/two.rs"] {
            measure(Path::new(file), &syn::parse_file(source).expect("Rust"), &mut types);
        }
        let (name, size) = types.first_key_value().expect("a type");
        assert_eq!((name.as_str(), size.methods, size.files.len()), ("crates/a::A", 4, 2));
        assert_eq!(too_large(name, size), None);
        let many_methods = Size { methods: METHODS_MAX + 1, files: size.files.clone() };
        assert!(too_large(name, &many_methods).is_some());
        let many_files = Size { methods: 1, files: (0..=IMPL_FILES_MAX).map(|i| format!("{i}.rs").into()).collect() };
        assert!(too_large(name, &many_files).is_some());
    }
}
