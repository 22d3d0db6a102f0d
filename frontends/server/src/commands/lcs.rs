//! LCS: the longest common subsequence of two values.

use crate::errors::{FixedError, Refusal};
use crate::execution::call::{Call, Function};

/// Functions of these commands, by the names of their table rows.
pub(super) const FUNCTIONS: &[(&str, Function)] = functions![lcs];

#[derive(Default)]
struct Options {
    returns_length: bool,
    returns_positions: bool,
    returns_match_lengths: bool,
    match_bytes_min: i64,
}

/// A run of common bytes, by its positions in both values.
struct Match {
    first: (usize, usize),
    second: (usize, usize),
}

fn lcs(call: &mut Call<'_>) -> Result<(), Refusal> {
    let options = Options::of(call)?;
    let a = call.store().get(call.key(1))?.unwrap_or_default();
    let b = call.store().get(call.key(2))?.unwrap_or_default();
    let table =
        Table::of(&a, &b, call.shared.administration.settings.bulk_bytes_max()).ok_or(FixedError::LcsLengths)?;
    if options.returns_length {
        call.reply.integer(table.at(a.len(), b.len()).into());
    } else if options.returns_positions {
        answer_places(call, &table, &a, &b, &options);
    } else {
        call.reply.bulk(&table.common(&a, &b));
    }
    Ok(())
}

impl Options {
    fn of(call: &Call<'_>) -> Result<Options, Refusal> {
        let mut options = Options::default();
        let mut arguments = call.request.arguments().skip(2);
        while let Some(name) = arguments.next() {
            match name.to_ascii_lowercase().as_slice() {
                b"len" => options.returns_length = true,
                b"idx" => options.returns_positions = true,
                b"withmatchlen" => options.returns_match_lengths = true,
                b"minmatchlen" => {
                    let number = arguments.next().ok_or(Refusal::Syntax)?;
                    options.match_bytes_min = resp::parse_integer(number).ok_or(Refusal::NotAnInteger)?.max(0);
                }
                _ => return Err(Refusal::Syntax),
            }
        }
        if options.returns_length && options.returns_positions {
            return Err(FixedError::LcsBoth.into());
        }
        Ok(options)
    }
}

/// The LCS lengths of all pairs of prefixes.
struct Table {
    lengths: Vec<u32>,
    width: usize,
}

impl Table {
    /// Builds the table; `None` if it would need more than `bytes_max`.
    fn of(a: &[u8], b: &[u8], bytes_max: usize) -> Option<Table> {
        let (height, width) = (a.len() + 1, b.len() + 1);
        let bytes = height.checked_mul(width)?.checked_mul(size_of::<u32>())?;
        if bytes > bytes_max {
            return None;
        }
        let mut table = Table { lengths: vec![0; height * width], width };
        for i in 1..height {
            for j in 1..width {
                let length = if a[i - 1] == b[j - 1] {
                    table.at(i - 1, j - 1) + 1
                } else {
                    table.at(i - 1, j).max(table.at(i, j - 1))
                };
                table.lengths[i * width + j] = length;
            }
        }
        Some(table)
    }

    fn at(&self, i: usize, j: usize) -> u32 {
        self.lengths[i * self.width + j]
    }

    /// Calls `each` with the positions of all common bytes, from last to first.
    fn walk_back(&self, a: &[u8], b: &[u8], mut each: impl FnMut(usize, usize)) {
        let (mut i, mut j) = (a.len(), b.len());
        while i > 0 && j > 0 {
            if a[i - 1] == b[j - 1] {
                (i, j) = (i - 1, j - 1);
                each(i, j);
            } else if self.at(i - 1, j) > self.at(i, j - 1) {
                i -= 1;
            } else {
                j -= 1;
            }
        }
    }

    fn common(&self, a: &[u8], b: &[u8]) -> Vec<u8> {
        let mut common = Vec::new();
        self.walk_back(a, b, |i, _| common.push(a[i]));
        common.reverse();
        common
    }

    /// Returns the runs of common bytes, from last to first.
    fn matches(&self, a: &[u8], b: &[u8]) -> Vec<Match> {
        let mut matches: Vec<Match> = Vec::new();
        self.walk_back(a, b, |i, j| match matches.last_mut() {
            Some(last) if last.first.0 == i + 1 && last.second.0 == j + 1 => (last.first.0, last.second.0) = (i, j),
            _ => matches.push(Match { first: (i, i), second: (j, j) }),
        });
        matches
    }
}

fn answer_places(call: &mut Call<'_>, table: &Table, a: &[u8], b: &[u8], options: &Options) {
    let mut matches = table.matches(a, b);
    matches.retain(|found| found.len_bytes() >= options.match_bytes_min);
    let reply = &mut call.reply;
    reply.map(2);
    reply.bulk(b"matches");
    reply.array(matches.len());
    for found in &matches {
        reply.array(2 + usize::from(options.returns_match_lengths));
        for (start, end) in [found.first, found.second] {
            reply.array(2);
            reply.integer(start as i64);
            reply.integer(end as i64);
        }
        if options.returns_match_lengths {
            reply.integer(found.len_bytes());
        }
    }
    reply.bulk(b"len");
    reply.integer(table.at(a.len(), b.len()).into());
}

impl Match {
    fn len_bytes(&self) -> i64 {
        (self.first.1 - self.first.0 + 1) as i64
    }
}
