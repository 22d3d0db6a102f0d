//! The instructions of one operation, by function and one by one.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use iced_x86::{Decoder, DecoderOptions, Formatter as _, IntelFormatter};

use crate::failure::Failure;
use crate::kinds::Executed;
use crate::symbols::{Mappings, Symbols};

/// The median operation, by function.
pub(crate) struct Profile {
    /// Instructions of each function, the most first.
    functions: Vec<(usize, String)>,
    /// Each instruction in the order of execution: address, function, text.
    instructions: Vec<(u64, String, String)>,
}

impl Profile {
    /// Creates the profile of an operation with the median number of instructions.
    pub(crate) fn of_middle(mut executed: Executed, mappings: &Mappings) -> Result<Profile, Failure> {
        executed.traces.sort_by_key(Vec::len);
        let middle = executed.traces.get(executed.traces.len() / 2).ok_or("there was no operation")?;
        let (mut symbols, mut by_function, mut instructions) = (Symbols::default(), BTreeMap::new(), Vec::new());
        for &address in middle {
            let name = symbols.name(mappings, address)?;
            *by_function.entry(name.clone()).or_insert(0) += 1;
            instructions.push((address, name, text(address, &executed.codes[&address])));
        }
        let mut functions: Vec<_> = by_function.into_iter().map(|(name, count)| (count, name)).collect();
        functions.sort_by(|a, b| b.cmp(a));
        Ok(Profile { functions, instructions })
    }

    /// Returns every instruction on a separate line.
    pub(crate) fn trace(&self) -> String {
        let line = |(address, name, text): &(u64, String, String)| format!("{address:#x}\t{text}\t{name}\n");
        self.instructions.iter().map(line).collect()
    }
}

impl Display for Profile {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:>6} instructions", self.instructions.len())?;
        self.functions.iter().try_for_each(|(count, name)| writeln!(f, "{count:>6} {name}"))
    }
}

fn text(address: u64, code: &[u8]) -> String {
    let instruction = Decoder::with_ip(64, code, address, DecoderOptions::NONE).decode();
    let mut text = String::new();
    IntelFormatter::new().format(&instruction, &mut text);
    text
}
