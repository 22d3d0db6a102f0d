//! `hikv batch`.

use std::collections::BTreeMap;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use hikv::{Clock, Error, Expiry, Limits, PutOptions, Tree, Version, WriteBatch};

use super::missing::not_found;
use crate::durable::Durable;
use crate::failure::Failure;
use crate::formats::{Change, ChangeReader, FileFormat, Format, Operation, ReadError};
use crate::in_tree::InTree;
use crate::input::{Input, Interruptible, is_stdin};
use crate::interrupt::Interrupt;
use crate::kept::Kept;

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
    /// KEY VALUE and absent KEY, with tabs between the words; or a JSON object with op, key, value and ttl.
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

/// The keys in the operations so far, with their resulting states.
#[derive(Default)]
struct Changed {
    by_key: BTreeMap<Vec<u8>, Made>,
    /// The size of the batch, as [`WriteBatch`] counts it.
    len_bytes: u64,
    conditions: Vec<Required>,
}

/// A condition in line `line`: the version of the key, which has the expected value, or `None` if it must be absent.
struct Required {
    line: u64,
    key: Vec<u8>,
    version: Option<Version>,
}

impl Changed {
    /// Sets the state of a key.
    ///
    /// # Errors
    /// The batch is too long, which is reported before more of it is read.
    fn insert(&mut self, key: Vec<u8>, made: Made) -> Result<(), Error> {
        let counted =
            |key: &[u8], made: &Made| Limits::batch_op_bytes(key, made.as_ref().map_or(&[], |(value, _)| value));
        self.len_bytes += counted(&key, &made);
        self.len_bytes -= self.by_key.get(&key).map_or(0, |before| counted(&key, before));
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
        let store = self.kept.options(self.durable.options()).open(&self.dir)?;
        let tree = self.tree.made(&store, &self.dir)?;
        let gathered = self.gather(&tree, reader);
        let outcome = interrupt.check(|| "nothing was applied".to_owned()).and(gathered);
        let outcome = outcome.and_then(|changed| self.write(&tree, &changed));
        drop(tree);
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
    fn gather(&self, tree: &Tree, mut reader: ChangeReader<BufReader<Interruptible<'_>>>) -> Result<Changed, Failure> {
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
            if let Operation::Expect(_) | Operation::Absent = change.operation {
                changed.conditions.push(self.required(tree, line, change)?);
                continue;
            }
            let now = match changed.by_key.get(&change.key) {
                Some(now) => now.clone(),
                None => held(tree, &change.key).map_err(Failure::at_path(&self.dir))?,
            };
            let next = match (change.operation, now) {
                (Operation::Put(value, time), _) => Some((value, time.map_or(Expiry::NEVER, |time| clock.after(time)))),
                (Operation::Delete, _) => None,
                (Operation::Expire(time), Some((value, _))) => Some((value, clock.after(time))),
                (Operation::Persist, Some((value, _))) => Some((value, Expiry::NEVER)),
                (Operation::Expect(_) | Operation::Absent, _) => unreachable!("conditions change nothing"),
                (_, None) => return Err(self.unmet(line, not_found(&self.dir, &change.key))),
            };
            changed.insert(change.key, next).map_err(|error| self.at_line(line, error.to_string()))?;
        }
    }

    /// Returns the condition in a line.
    fn required(&self, tree: &Tree, line: u64, Change { key, operation }: Change) -> Result<Required, Failure> {
        let Operation::Expect(value) = operation else { return Ok(Required { line, key, version: None }) };
        match tree.get_item(&key).map_err(Failure::at_path(&self.dir))? {
            Some(held) if held.value == value => Ok(Required { line, key, version: Some(held.version) }),
            Some(_) => Err(self.unmet(line, format!("the key '{}' has another value", key.escape_ascii()))),
            None => Err(self.unmet(line, not_found(&self.dir, &key))),
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

    fn write(&self, tree: &Tree, changed: &Changed) -> Result<(), Failure> {
        let mut batch = WriteBatch::new();
        for Required { key, version, .. } in &changed.conditions {
            match version {
                Some(version) => batch.expect_version(key, *version),
                None => batch.expect_absent(key),
            };
        }
        for (key, change) in &changed.by_key {
            match change {
                Some((value, expiry)) => batch.put_with(key, value, PutOptions::new().expires(*expiry)),
                None => batch.delete(key),
            };
        }
        tree.write(&batch).map_err(|error| match error {
            Error::ConditionFailed { condition } => {
                let Required { line, key, version } = &changed.conditions[condition];
                let what = if version.is_some() { "has changed" } else { "exists" };
                self.unmet(*line, format!("the key '{}' {what}", key.escape_ascii()))
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
