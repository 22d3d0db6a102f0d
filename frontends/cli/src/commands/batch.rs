//! `hikv batch`.

use std::collections::BTreeMap;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use hikv::{Clock, Error, Expiry, Limits, PutOptions, Store, Tree, Version, WriteBatch};

use super::missing::not_found;
use crate::durable::Durable;
use crate::failure::Failure;
use crate::formats::{Change, ChangeReader, FileFormat, Format, Operation, ReadError};
use crate::in_tree::InTree;
use crate::input::{Input, Interruptible, is_stdin};
use crate::interrupt::Interrupt;
use crate::kept::Kept;
use crate::memory::Memory;

/// Carry out several operations as one atomic step
///
/// After an error or a crash, none of the operations is applied.
#[derive(Args)]
pub(crate) struct Batch {
    /// The store: a directory or a DAX device
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// File of operations, one per line; - is standard input
    ///
    /// A line is put KEY VALUE [SECONDS], delete KEY, expire KEY SECONDS, persist KEY, or one of the conditions expect
    /// KEY VALUE and absent KEY, with tabs between the words; or a JSON object with op, key, value and ttl. The lines
    /// after tree NAME, and an object with tree, are for that tree.
    #[arg(default_value = "-")]
    file: PathBuf,
    /// Format of FILE [default: by its extension; tsv for standard input]
    #[arg(long, value_enum)]
    format: Option<ChangeFormat>,
    #[command(flatten)]
    tree: InTree,
    #[command(flatten)]
    kept: Kept,
    #[command(flatten)]
    durable: Durable,
    #[command(flatten)]
    memory: Memory,
}

/// A format of operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum ChangeFormat {
    /// Words separated by tabs
    Tsv,
    /// One JSON object per line
    Jsonl,
}

impl From<ChangeFormat> for Format {
    fn from(format: ChangeFormat) -> Format {
        match format {
            ChangeFormat::Tsv => Format::Tsv,
            ChangeFormat::Jsonl => Format::Jsonl,
        }
    }
}

/// The state of a key after the operations so far: its value and expiry, or `None` if the key is absent.
type Made = Option<(Vec<u8>, Expiry)>;

/// The trees of the operations so far.
struct Trees<'s> {
    store: &'s Store,
    /// The tree of the command, and those that operations have named.
    open: Vec<Tree>,
    numbers: BTreeMap<String, usize>,
}

impl Trees<'_> {
    /// Returns the number of a tree, and creates the tree if there is none.
    fn number(&mut self, name: Option<String>) -> Result<usize, Error> {
        let Some(name) = name else { return Ok(0) };
        if let Some(number) = self.numbers.get(&name) {
            return Ok(*number);
        }
        self.open.push(self.store.tree(&name)?);
        self.numbers.insert(name, self.open.len() - 1);
        Ok(self.open.len() - 1)
    }
}

/// A key of the tree of a number.
type TreeKey = (usize, Vec<u8>);

/// The keys in the operations so far, with their resulting states.
#[derive(Default)]
struct Changed {
    by_key: BTreeMap<TreeKey, Made>,
    /// The size of the batch, as [`WriteBatch`] counts it.
    len_bytes: u64,
    conditions: Vec<Required>,
}

/// A condition in line `line`: the version of the key, which has the expected value, or `None` if it must be absent.
struct Required {
    line: u64,
    key: TreeKey,
    version: Option<Version>,
}

impl Changed {
    /// Sets the state of a key.
    ///
    /// # Errors
    /// The batch is too long, which is reported before more of it is read.
    fn insert(&mut self, key: TreeKey, made: Made) -> Result<(), Error> {
        let counted =
            |key: &[u8], made: &Made| Limits::batch_op_bytes(key, made.as_ref().map_or(&[], |(value, _)| value));
        self.len_bytes += counted(&key.1, &made);
        self.len_bytes -= self.by_key.get(&key).map_or(0, |before| counted(&key.1, before));
        if self.len_bytes > Limits::BATCH_BYTES_MAX {
            return Err(Error::BatchTooLong { len_bytes: self.len_bytes });
        }
        self.by_key.insert(key, made);
        Ok(())
    }
}

impl Batch {
    pub(super) fn run(self) -> Result<(), Failure> {
        let (format, interrupt) = (self.format()?, Interrupt::install()?);
        let input = Input::open(&self.file).map_err(Failure::at_path(&self.file))?;
        let reader = ChangeReader::new(BufReader::new(input.interruptible(&interrupt)), format);
        let reader = reader
            .ok_or_else(|| Failure::at(self.file.display(), "operations cannot be csv; give --format tsv or jsonl"))?;
        let store = self.kept.options(self.memory.options(self.durable.options())).open(&self.dir)?;
        let open = vec![self.tree.made(&store, &self.dir)?];
        let mut trees = Trees { store: &store, open, numbers: BTreeMap::new() };
        let gathered = self.gather(&mut trees, reader);
        let outcome = interrupt.check(|| "nothing was applied".to_owned()).and(gathered);
        let outcome = outcome.and_then(|changed| self.write(&trees, &changed));
        drop(trees);
        store.close().map_err(Failure::at_path(&self.dir))?;
        outcome
    }

    fn format(&self) -> Result<Format, Failure> {
        let by_name = || match FileFormat::of_file(&self.file) {
            Some(FileFormat::Text(format)) => Some(format),
            _ => None,
        };
        let by_default = || is_stdin(&self.file).then_some(Format::Tsv);
        let found = self.format.map(Format::from).or_else(by_default).or_else(by_name);
        found.ok_or_else(|| {
            Failure::at(self.file.display(), "the extension is neither tsv nor jsonl; give --format tsv or jsonl")
        })
    }

    /// Reads all operations before the first write. No other thread or process writes to the store during this.
    fn gather(
        &self,
        trees: &mut Trees<'_>,
        mut reader: ChangeReader<BufReader<Interruptible<'_>>>,
    ) -> Result<Changed, Failure> {
        let (mut changed, clock) = (Changed::default(), Clock::default());
        loop {
            let (line, change) = match reader.next() {
                Ok(Some(next)) => next,
                Ok(None) => return Ok(changed),
                Err(ReadError::Malformed { line, what } | ReadError::CutOff { line, what }) => {
                    return Err(self.at_line(line, what));
                }
                Err(ReadError::Input(error)) => return Err(Failure::at(self.name().display(), error)),
            };
            self.check(&change).map_err(|what| self.at_line(line, what))?;
            let Change { tree, key, operation } = change;
            let number = trees.number(tree).map_err(|error| self.at_line(line, error.to_string()))?;
            let (tree, key) = (&trees.open[number], (number, key));
            if let Operation::Expect(_) | Operation::Absent = operation {
                changed.conditions.push(self.required(tree, line, key, operation)?);
                continue;
            }
            let now = match changed.by_key.get(&key) {
                Some(now) => now.clone(),
                None => held(tree, &key.1).map_err(Failure::at_path(&self.dir))?,
            };
            let next = match (operation, now) {
                (Operation::Put(value, time), _) => Some((value, time.map_or(Expiry::NEVER, |time| clock.after(time)))),
                (Operation::Delete, _) => None,
                (Operation::Expire(time), Some((value, _))) => Some((value, clock.after(time))),
                (Operation::Persist, Some((value, _))) => Some((value, Expiry::NEVER)),
                (Operation::Expect(_) | Operation::Absent, _) => unreachable!("conditions change nothing"),
                (_, None) => return Err(self.unmet(line, not_found(&self.dir, &key.1))),
            };
            changed.insert(key, next).map_err(|error| self.at_line(line, error.to_string()))?;
        }
    }

    /// Returns the condition in a line.
    fn required(&self, tree: &Tree, line: u64, key: TreeKey, operation: Operation) -> Result<Required, Failure> {
        let Operation::Expect(value) = operation else { return Ok(Required { line, key, version: None }) };
        match tree.get_item(&key.1).map_err(Failure::at_path(&self.dir))? {
            Some(held) if held.value == value => Ok(Required { line, key, version: Some(held.version) }),
            Some(_) => Err(self.unmet(line, format!("the key '{}' has another value", key.1.escape_ascii()))),
            None => Err(self.unmet(line, not_found(&self.dir, &key.1))),
        }
    }

    fn check(&self, change: &Change) -> Result<(), String> {
        let key_bytes = change.key.len();
        if key_bytes > Limits::KEY_BYTES_MAX {
            return Err(format!("the key has {key_bytes} bytes; the limit is {}", Limits::KEY_BYTES_MAX));
        }
        match &change.operation {
            Operation::Put(value, _) | Operation::Expect(value) if value.len() as u64 > Limits::VALUE_BYTES_MAX => {
                Err(format!("the value has {} bytes; the limit is {}", value.len(), Limits::VALUE_BYTES_MAX))
            }
            _ => Ok(()),
        }
    }

    fn write(&self, trees: &Trees<'_>, changed: &Changed) -> Result<(), Failure> {
        let mut batch = WriteBatch::new();
        for Required { key: (tree, key), version, .. } in &changed.conditions {
            batch.tree(&trees.open[*tree]);
            match version {
                Some(version) => batch.expect_version(key, *version),
                None => batch.expect_absent(key),
            };
        }
        for ((tree, key), change) in &changed.by_key {
            batch.tree(&trees.open[*tree]);
            match change {
                Some((value, expiry)) => batch.put_with(key, value, PutOptions::new().expires(*expiry)),
                None => batch.delete(key),
            };
        }
        trees.store.write(&batch).map_err(|error| match error {
            Error::ConditionFailed { condition } => {
                let Required { line, key, version } = &changed.conditions[condition];
                let what = if version.is_some() { "has changed" } else { "exists" };
                self.unmet(*line, format!("the key '{}' {what}", key.1.escape_ascii()))
            }
            other => Failure::at_path(&self.dir)(other),
        })
    }

    fn name(&self) -> &Path {
        if is_stdin(&self.file) { Path::new("standard input") } else { &self.file }
    }

    fn at_line(&self, line: u64, what: String) -> Failure {
        Failure::Error(self.undone(line, what))
    }

    /// Returns the failure for a condition in a line: the answer is no, but the line is correct.
    fn unmet(&self, line: u64, what: String) -> Failure {
        Failure::Negative(self.undone(line, what))
    }

    fn undone(&self, line: u64, what: String) -> String {
        format!("{}:{line}: {what}; nothing was applied", self.name().display())
    }
}

/// Returns the present value and expiry of the key.
fn held(tree: &Tree, key: &[u8]) -> Result<Made, Error> {
    Ok(tree.get_item(key)?.map(|held| (held.value.into_vec(), held.expiry)))
}
