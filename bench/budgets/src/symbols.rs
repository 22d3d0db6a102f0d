//! Function names by address, for a program that is single-stepped.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use object::{Object, ObjectSegment, ObjectSymbol, SymbolKind};

use crate::failure::Failure;

/// The addresses at which the kernel mapped a program's files.
pub(crate) struct Mappings(Vec<Mapping>);

struct Mapping {
    start: u64,
    end: u64,
    file_offset: u64,
    path: PathBuf,
}

impl Mappings {
    /// Reads the current mappings of the process `pid`.
    pub(crate) fn of(pid: impl std::fmt::Display) -> Result<Mappings, Failure> {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps"))?;
        Ok(Mappings(maps.lines().filter_map(Mapping::parse).collect()))
    }

    fn at(&self, address: u64) -> Option<&Mapping> {
        self.0.iter().find(|mapping| (mapping.start..mapping.end).contains(&address))
    }
}

impl Mapping {
    /// Parses a line that names a file: `start-end rights offset device inode path`.
    fn parse(line: &str) -> Option<Mapping> {
        let mut fields = line.split_ascii_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        let file_offset = fields.nth(1)?;
        let path = fields.nth(2).filter(|path| path.starts_with('/'))?;
        let number = |digits| u64::from_str_radix(digits, 16).ok();
        Some(Mapping { start: number(start)?, end: number(end)?, file_offset: number(file_offset)?, path: path.into() })
    }
}

/// Functions of the files that were looked up.
#[derive(Default)]
pub(crate) struct Symbols(HashMap<PathBuf, Functions>);

/// A file's functions by their start, and its segments with address and file offset.
struct Functions {
    named: Vec<(u64, u64, String)>,
    segments: Vec<(u64, u64, u64)>,
}

impl Symbols {
    /// Returns the function at `address`, or the file's name in square brackets if no function is known.
    pub(crate) fn name(&mut self, mappings: &Mappings, address: u64) -> Result<String, Failure> {
        let Some(mapping) = mappings.at(address) else { return Ok("[unknown]".to_owned()) };
        if !self.0.contains_key(&mapping.path) {
            self.0.insert(mapping.path.clone(), Functions::read(&mapping.path)?);
        }
        let offset = address - mapping.start + mapping.file_offset;
        let name = self.0[&mapping.path].at(offset);
        Ok(name.unwrap_or_else(|| format!("[{}]", mapping.path.file_name().unwrap_or_default().display())))
    }
}

impl Functions {
    fn read(path: &Path) -> Result<Functions, Failure> {
        let bytes = fs::read(path)?;
        let file = object::File::parse(&*bytes)?;
        let functions = file.symbols().chain(file.dynamic_symbols()).filter(|symbol| symbol.kind() == SymbolKind::Text);
        let mut named: Vec<_> = functions
            .filter_map(|symbol| Some((symbol.address(), symbol.size(), demangled(symbol.name().ok()?))))
            .collect();
        named.sort();
        let segments = file.segments().map(|segment| {
            let (offset, len_bytes) = segment.file_range();
            (offset, len_bytes, segment.address())
        });
        Ok(Functions { named, segments: segments.collect() })
    }

    /// Returns the function that contains the byte at `offset` of the file.
    fn at(&self, offset: u64) -> Option<String> {
        let within = |&&(start, len_bytes, _): &&(u64, u64, u64)| (start..start + len_bytes).contains(&offset);
        let &(start, _, address) = self.segments.iter().find(within)?;
        let address = offset - start + address;
        let past = self.named.partition_point(|(start, ..)| *start <= address);
        let (start, len_bytes, name) = self.named[..past].last()?;
        (address < start + len_bytes).then(|| name.clone())
    }
}

fn demangled(name: &str) -> String {
    format!("{:#}", rustc_demangle::demangle(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn function_of_this_program_has_its_name() {
        let mappings = Mappings::of(std::process::id()).expect("the process is there");
        let address = demangled as fn(&str) -> String as usize as u64;
        let name = Symbols::default().name(&mappings, address + 1).expect("its file can be read");
        assert!(name.ends_with("symbols::demangled"), "{name}");
        let unknown = Symbols::default().name(&mappings, 1).expect("there is nothing to be read");
        assert_eq!(unknown, "[unknown]");
    }
}
