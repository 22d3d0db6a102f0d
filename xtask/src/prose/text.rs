//! The prose of a file: the text of a page, the comments of a source, and the texts that a program prints.
//!
//! Blocks of code are left out. Of the string literals of a source only sentences are read, and none of its tests.

use std::path::Path;

use proc_macro2::{Group, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, ImplItemFn, ItemFn, ItemMod, LitStr, Macro, Meta};

use crate::failure::Failure;
use crate::tree;

/// Words of a string literal that is read as a sentence.
const SENTENCE_WORDS_MIN: usize = 4;

/// One line of prose.
pub(super) struct Line {
    /// Its number, from 1; 0 for a text that a program prints.
    pub(super) number: usize,
    /// The text, without the marker of a comment.
    pub(super) text: String,
    /// True in a doc comment.
    pub(super) is_doc_comment: bool,
    /// True in a page.
    pub(super) is_of_page: bool,
}

/// Returns true for a Rust source.
pub(super) fn is_source(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "rs")
}

/// Returns the prose of a page or a source.
///
/// # Errors
/// If a source is none of Rust.
pub(super) fn lines(path: &Path, source: &str) -> Result<Vec<Line>, Failure> {
    if !is_source(path) {
        return Ok(page(source));
    }
    let mut lines = comments(source);
    if !is_test(path) {
        let file = syn::parse_file(source).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut texts = Texts(Vec::new());
        texts.visit_file(&file);
        lines.extend(texts.0.into_iter().map(|text| Line {
            number: 0,
            text,
            is_doc_comment: false,
            is_of_page: false,
        }));
    }
    Ok(lines)
}

fn page(source: &str) -> Vec<Line> {
    let line =
        |(number, text): (usize, &str)| Line { number, text: text.to_owned(), is_doc_comment: false, is_of_page: true };
    prose(source.lines().enumerate().map(|(at, text)| (at + 1, text))).map(line).collect()
}

fn comments(source: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    // A comment ends, with its block of code, where a line is none.
    let (mut before, mut is_code) = (0, false);
    for (number, is_doc_comment, text) in source.lines().enumerate().filter_map(comment) {
        is_code &= before + 1 == number;
        before = number;
        if is_fence(text) {
            is_code = !is_code;
        } else if !is_code {
            lines.push(Line { number, text: text.to_owned(), is_doc_comment, is_of_page: false });
        }
    }
    lines
}

/// The number of a comment's line, whether it is of a doc comment, and its text.
fn comment((at, line): (usize, &str)) -> Option<(usize, bool, &str)> {
    let text = line.trim_start().strip_prefix("//")?;
    Some((at + 1, text.starts_with(['/', '!']), text.trim_start_matches(['/', '!'])))
}

/// The lines outside blocks of code.
fn prose<'a>(lines: impl Iterator<Item = (usize, &'a str)>) -> impl Iterator<Item = (usize, &'a str)> {
    let mut is_code = false;
    lines.filter(move |(_, text)| {
        let is_fence = is_fence(text);
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

fn is_fence(text: &str) -> bool {
    text.trim_start().starts_with("```")
}

/// Returns true if the file prints nothing for users: tests and what they use.
fn is_test(path: &Path) -> bool {
    tree::is_test(path) || path.iter().any(|part| part == "testkit")
}

/// The sentences among a source's string literals.
struct Texts(Vec<String>);

impl Texts {
    fn take(&mut self, text: String) {
        if text.split_whitespace().count() >= SENTENCE_WORDS_MIN {
            self.0.push(text);
        }
    }

    fn take_tokens(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) if !is_doc_comment(&group) => self.take_tokens(group.stream()),
                TokenTree::Literal(literal) => {
                    if let Ok(text) = syn::parse_str::<LitStr>(&literal.to_string()) {
                        self.take(text.value());
                    }
                }
                TokenTree::Group(_) | TokenTree::Ident(_) | TokenTree::Punct(_) => {}
            }
        }
    }
}

impl<'ast> Visit<'ast> for Texts {
    fn visit_lit_str(&mut self, text: &'ast LitStr) {
        self.take(text.value());
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        self.take_tokens(call.tokens.clone());
    }

    /// Doc comments are attributes, and are read as comments.
    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        if let Meta::List(list) = &attribute.meta {
            self.take_tokens(list.tokens.clone());
        }
    }

    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        if !is_for_tests(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        if !is_for_tests(&function.attrs) {
            visit::visit_item_fn(self, function);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        if !is_for_tests(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }
}

/// Returns true for the attribute that the compiler makes of a doc comment within a macro call.
fn is_doc_comment(group: &Group) -> bool {
    matches!(group.stream().into_iter().next(), Some(TokenTree::Ident(name)) if name == "doc")
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| attribute.path().is_ident("test") || tree::is_for_tests(attribute))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(path: &str, source: &str) -> Vec<String> {
        let lines = lines(Path::new(path), source).expect("prose");
        lines.into_iter().map(|line| line.text.trim().to_owned()).collect()
    }

    #[test]
    fn pages_are_read_without_code() {
        assert_eq!(texts("a.md", "One\n```text\ntwo\n```\nthree"), ["One", "three"]);
    }

    #[test]
    fn comments_are_read_without_code() {
        let source = "//! One\n\n/// two\n/// ```\n/// three\n/// ```\n/// four\nfn a() {\n    // five\n}\n";
        assert_eq!(texts("crates/a/src/lib.rs", source), ["One", "two", "four", "five"]);
    }

    #[test]
    fn printed_sentences_are_read() {
        let source = r#"
            #[command(about = "Print all keys in order")]
            fn a() -> String { let _ = "short"; b! { /// A comment of a field.
                c } format!("cannot open the store {}", b("a key of four words")) }
            #[cfg(test)]
            mod tests { fn c() { panic!("a test says so too") } }
            #[test]
            fn d() { panic!("another test says so") }
        "#;
        let expected = ["Print all keys in order", "cannot open the store {}", "a key of four words"];
        assert_eq!(texts("crates/a/src/lib.rs", source), expected);
        assert!(texts("crates/a/tests/a.rs", source).is_empty());
    }
}
