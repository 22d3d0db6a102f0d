//! `hikv.h` declares the crate's exports: each function with all its types, each structure, each constant, and the
//! symbols of the library.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use syn::{Fields, File, FnArg, Item, Pat, ReturnType, Type};

use crate::library::{directory, run, source};

/// The structures whose members programs see.
pub(crate) const STRUCTURES: [&str; 3] = ["hikv_slice", "hikv_options", "hikv_transact_options"];

/// Returns the header without comments and line breaks, with single spaces.
pub(crate) fn header() -> String {
    let mut text = fs::read_to_string(source().join("include/hikv.h")).expect("the header is read");
    while let Some(start) = text.find("/*") {
        let end = start + text[start..].find("*/").expect("a comment ends");
        text.replace_range(start..end + 2, "");
    }
    let code: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    code.join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the functions of a C text by their names: results and types of the parameters.
pub(crate) fn declared(header: &str) -> BTreeMap<String, String> {
    let declarations = header.split(';').filter_map(|part| {
        let (before, parameters) = part.trim().split_once('(')?;
        let start = before.rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |at| at + 1);
        let parameters = parameters.strip_suffix(')')?;
        let types: Vec<String> = split(parameters).into_iter().map(without_name).collect();
        let result = before[..start].trim().trim_start_matches("extern \"C\" {").trim();
        Some((before[start..].to_owned(), format!("{result} ({})", types.join(", "))))
    });
    declarations.filter(|(name, _)| name.starts_with("hikv_")).collect()
}

/// Splits parameters at the commas outside of parentheses.
fn split(parameters: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, c) in parameters.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(parameters[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(parameters[start..].trim());
    parts.retain(|part| *part != "void");
    parts
}

/// Removes the name of a C parameter.
fn without_name(parameter: &str) -> String {
    if let Some((result, rest)) = parameter.split_once("(*") {
        let (_, inner) = rest.split_once(")(").expect("a pointer to a function has parameters");
        let types: Vec<_> = split(inner.trim_end_matches(')')).into_iter().map(without_name).collect();
        return format!("{} (*)({})", result.trim(), types.join(", "));
    }
    let (parameter, is_array) = parameter.strip_suffix("[2]").map_or((parameter, false), |parameter| (parameter, true));
    let name = parameter.rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |at| at + 1);
    format!("{}{}", parameter[..name].trim(), if is_array { " *" } else { "" })
}

fn files() -> Vec<File> {
    let entries = fs::read_dir(source().join("src")).expect("the source is there");
    let texts = entries.map(|entry| fs::read_to_string(entry.expect("it is listed").path()).expect("it is read"));
    texts.map(|text| syn::parse_file(&text).expect("it is Rust")).collect()
}

/// Returns the C type of a Rust type.
fn c_type(ty: &Type) -> String {
    match ty {
        Type::Ptr(pointer) => {
            let target = c_type(&pointer.elem);
            let target = if pointer.const_token.is_some() { format!("const {target}") } else { target };
            if target.ends_with('*') { format!("{target}*") } else { format!("{target} *") }
        }
        Type::Path(path) => {
            let last = path.path.segments.last().expect("a path has a segment");
            match last.ident.to_string().as_str() {
                "c_int" => "int".into(),
                "c_char" => "char".into(),
                "c_void" => "void".into(),
                "usize" => "size_t".into(),
                "u32" => "uint32_t".into(),
                "u64" => "uint64_t".into(),
                "i64" => "int64_t".into(),
                "Option" => {
                    let syn::PathArguments::AngleBracketed(inner) = &last.arguments else { panic!("a plain Option") };
                    let Some(syn::GenericArgument::Type(Type::BareFn(function))) = inner.args.first() else {
                        panic!("an Option of something else than a function")
                    };
                    let types: Vec<_> = function.inputs.iter().map(|input| c_type(&input.ty)).collect();
                    format!("{} (*)({})", c_result(&function.output), types.join(", "))
                }
                name => name.to_owned(),
            }
        }
        _ => panic!("a type that C does not have"),
    }
}

fn c_result(output: &ReturnType) -> String {
    match output {
        ReturnType::Default => "void".into(),
        ReturnType::Type(_, ty) => c_type(ty),
    }
}

#[test]
fn functions_have_the_types_of_the_header() {
    let mut exported = BTreeMap::new();
    for item in files().into_iter().flat_map(|file| file.items) {
        let Item::Fn(function) = item else { continue };
        if function.sig.abi.is_none() {
            continue;
        }
        let types = function.sig.inputs.iter().map(|input| match input {
            FnArg::Typed(argument) => {
                assert!(matches!(*argument.pat, Pat::Ident(_)));
                c_type(&argument.ty)
            }
            FnArg::Receiver(_) => panic!("a C function has no receiver"),
        });
        let signature = format!("{} ({})", c_result(&function.sig.output), types.collect::<Vec<_>>().join(", "));
        exported.insert(function.sig.ident.to_string(), signature);
    }
    let declared = declared(&header());
    assert!(declared.len() > 45, "only {} functions are declared", declared.len());
    assert_eq!(declared, exported);
}

/// Returns the members of a structure: their names and types, in their order.
pub(crate) fn members(header: &str, structure: &str) -> Vec<(String, String)> {
    let start = header.find(&format!("typedef struct {structure} {{")).expect("it is declared") + structure.len() + 17;
    let body = &header[start..start + header[start..].find('}').expect("it ends")];
    let mut members = Vec::new();
    for declaration in body.split(';').map(str::trim).filter(|declaration| !declaration.is_empty()) {
        let (ty, _) = declaration.split_at(declaration.find(", ").unwrap_or(declaration.len()));
        let ty = without_name(ty);
        let names = declaration[ty.len()..].split(',').map(str::trim);
        members.extend(names.map(|name| (name.to_owned(), ty.clone())));
    }
    members
}

/// Returns the constants by their names, without `HIKV_`.
pub(crate) fn constants(header: &str) -> BTreeMap<String, String> {
    let mut constants = BTreeMap::new();
    for body in header.split("enum {").skip(1) {
        let body = &body[..body.find('}').expect("it ends")];
        for constant in body.split(',').map(str::trim).filter(|constant| !constant.is_empty()) {
            let (name, value) = constant.split_once(" = ").expect("each constant has a value");
            constants.insert(name.trim_start_matches("HIKV_").to_owned(), value.to_owned());
        }
    }
    constants
}

#[test]
fn structures_have_the_members_of_the_header() {
    let header = header();
    for name in STRUCTURES {
        let items = files().into_iter().flat_map(|file| file.items);
        let fields = items.filter_map(|item| match item {
            Item::Struct(structure) if structure.ident == name => Some(structure.fields),
            _ => None,
        });
        let Some(Fields::Named(fields)) = fields.last() else { panic!("{name} has no members") };
        let fields = fields
            .named
            .iter()
            .map(|field| (field.ident.as_ref().expect("it has a name").to_string(), c_type(&field.ty)));
        assert_eq!(members(&header, name), fields.collect::<Vec<_>>(), "{name}");
    }
}

#[test]
fn constants_have_the_values_of_the_header() {
    let code = fs::read_to_string(source().join("src/code.rs")).expect("it is read");
    let defined = code.lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("pub(crate) const ")?.split_once(": ")?;
        Some((name.to_owned(), rest.split_once(" = ")?.1.trim_end_matches(';').to_owned()))
    });
    assert_eq!(constants(&header()), defined.collect());
}

#[test]
fn library_exports_exactly_the_header() {
    let symbols = run(Command::new("nm").args(["-D", "--defined-only"]).arg(directory().join("libhikv.so.1")));
    let mut exported: Vec<&str> =
        symbols.lines().filter_map(|line| line.split_whitespace().last()).filter(|name| *name != "HIKV_1").collect();
    exported.sort_unstable();
    let declared: Vec<String> = declared(&header()).into_keys().map(|name| format!("{name}@@HIKV_1")).collect();
    assert_eq!(exported, declared);
    let dynamic = run(Command::new("readelf").arg("-d").arg(directory().join("libhikv.so.1")));
    assert!(dynamic.contains("soname: [libhikv.so.1]"), "{dynamic}");
}
