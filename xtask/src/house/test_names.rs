//! Checks the number of words in the names of tests: enough to search for, and few enough to read.

use std::fs;
use std::ops::RangeInclusive;

use syn::visit::{self, Visit};
use syn::{Attribute, File, ItemFn};

use crate::failure::Failure;
use crate::tree;

const WORD_COUNTS: RangeInclusive<usize> = 2..=7;

/// Checks all tests, except those that macros make.
///
/// # Errors
/// If a name has too few or too many words; all are printed first.
pub(super) fn check() -> Result<(), Failure> {
    let (mut count, mut wrong_count) = (0, 0);
    for path in tree::files(&["rs"])? {
        let source = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let names = test_names(&syn::parse_file(&source).map_err(|error| format!("{}: {error}", path.display()))?);
        count += names.len();
        for name in names.iter().filter(|name| !WORD_COUNTS.contains(&word_count(name))) {
            println!("{}: test {name} has {} words", path.display(), word_count(name));
            wrong_count += 1;
        }
    }
    let (min, max) = WORD_COUNTS.into_inner();
    if wrong_count > 0 {
        return Err(format!("{wrong_count} names of tests do not have {min} to {max} words"));
    }
    println!("the names of {count} tests have {min} to {max} words");
    Ok(())
}

/// Returns the names of a file's tests, also of those in modules.
fn test_names(file: &File) -> Vec<String> {
    let mut tests = Tests::default();
    tests.visit_file(file);
    tests.0
}

fn word_count(name: &str) -> usize {
    name.split('_').count()
}

#[derive(Default)]
struct Tests(Vec<String>);

impl Visit<'_> for Tests {
    fn visit_item_fn(&mut self, function: &ItemFn) {
        if function.attrs.iter().any(is_test) {
            self.0.push(function.sig.ident.to_string());
        }
        visit::visit_item_fn(self, function);
    }
}

fn is_test(attribute: &Attribute) -> bool {
    attribute.path().is_ident("test")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_test_names_are_counted() {
        let source = "fn a_helper_whose_name_has_more_than_seven_words() {} #[test] fn short() {} \
                      mod tests { #[test] fn name_of_seven_words_is_not_long() {} \
                      #[test] #[ignore] fn this_name_has_one_word_more_than_seven() {} }";
        let names = test_names(&syn::parse_file(source).expect("Rust"));
        assert_eq!(names.iter().map(|name| word_count(name)).collect::<Vec<_>>(), [1, 7, 8]);
        let wrong: Vec<_> = names.iter().filter(|name| !WORD_COUNTS.contains(&word_count(name))).collect();
        assert_eq!(wrong, ["short", "this_name_has_one_word_more_than_seven"]);
    }
}
