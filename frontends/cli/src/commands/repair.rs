//! `hikv repair`.

use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use clap::Args;
use hikv::repair::{Finding, MissingFile, RepairError, RepairEvent, RepairReport, Weight, repair};
use serde::Serialize;

use crate::failure::{Failure, unless_closed, with_sources};
use crate::formats::Escaped;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::plural::s;
use crate::progress::Progress;

/// Salvage a damaged store into a new one, and list the losses
///
/// DIR is not changed. The exit code is 0 if nothing is lost, 1 if something is, and 2 if no new store was made.
#[derive(Args)]
pub(crate) struct Repair {
    /// The damaged store: a directory or a DAX device
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// The directory of the new store; must not exist, or be empty
    #[arg(value_name = "OUT")]
    out: PathBuf,
    /// Also write the findings to FILE, one JSON object per line
    #[arg(long, value_name = "FILE")]
    lost: Option<PathBuf>,
    /// Seconds between progress lines if stderr is not a terminal
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    progress_every: u64,
}

impl Repair {
    pub(super) fn run(self) -> Result<(), Failure> {
        let interrupt = Interrupt::install()?;
        let list = self.lost.as_ref().map(|file| Output::create(file, &self.dir)).transpose()?;
        let mut list = list.map(BufWriter::new);
        let mut progress: Option<Progress> = None;
        let mut written = Ok(());
        let outcome = repair(&self.dir, &self.out, |event| {
            match event {
                RepairEvent::Found(finding) => {
                    written = written_after(&written, || print_finding(&finding, list.as_mut()))
                }
                RepairEvent::Missing(missing) => {
                    written = written_after(&written, || print_missing(&missing, list.as_mut()));
                }
                RepairEvent::Progress(at) => progress
                    .get_or_insert_with(|| {
                        Progress::new("salvaged", Some(at.total), Duration::from_secs(self.progress_every))
                    })
                    .set(at.items, at.done),
                _ => {}
            }
            let stop = written.is_err() || interrupt.signal().is_some();
            if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        // An incomplete list is not completed, so it does not replace FILE.
        let list = list.filter(|_| outcome.is_ok());
        let written = written.and_then(|()| list.map_or(Ok(()), |list| list.into_inner()?.finish()));
        // A closed pipe is also an error here: the list is part of the result.
        written.map_err(|error| Failure::at("the list of losses", error))?;
        let end = progress.map(Progress::end).unwrap_or_default();
        match (outcome, interrupt.signal()) {
            (Ok(report), _) => self.conclude(&report, &end),
            (Err(RepairError::Stopped { .. }), Some(signal)) => {
                Err(Failure::Interrupted { signal, done: format!("{end}; the new store was removed") })
            }
            (Err(error), _) => Err(Failure::Error(with_sources(&error))),
        }
    }

    fn conclude(&self, report: &RepairReport, end: &str) -> Result<(), Failure> {
        if !end.is_empty() {
            // Ignores errors: if stderr is closed, nothing reads the progress.
            let _ = writeln!(io::stderr(), "{end}");
        }
        let RepairReport { items, mended_count, doubtful_count, lost_count, .. } = report;
        let what =
            format!("{items} item{}, {mended_count} mended, {doubtful_count} doubtful, {lost_count} lost\n", s(*items));
        unless_closed(io::stdout().write_all(what.as_bytes())).map_err(Failure::output("standard output"))?;
        match lost_count {
            0 => Ok(()),
            _ => Err(Failure::Negative(format!(
                "{}: not everything could be salvaged; --lost FILE lists the losses",
                self.dir.display()
            ))),
        }
    }
}

/// Calls `write` unless an earlier write failed; keeps the first error.
fn written_after(before: &io::Result<()>, write: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    match before {
        Ok(()) => write(),
        Err(error) => Err(error.kind().into()),
    }
}

fn name(weight: Weight) -> &'static str {
    match weight {
        Weight::Mended => "mended",
        Weight::Doubtful => "doubtful",
        Weight::Lost => "lost",
    }
}

/// A finding, as an object in the list.
#[derive(Serialize)]
struct Object<'a> {
    finding: &'static str,
    offset: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_base64: Option<String>,
    what: &'a str,
}

fn print_finding(finding: &Finding, list: Option<&mut BufWriter<Output>>) -> io::Result<()> {
    let (what, offset) = (name(finding.weight), finding.offset);
    let key = finding.key.as_ref().map(|key| format!(" key '{}':", Escaped(key))).unwrap_or_default();
    unless_closed(writeln!(io::stdout(), "{what} at offset {offset:#x}:{key} {}", finding.what))?;
    let Some(list) = list else { return Ok(()) };
    let key = finding.key.as_deref();
    let object = Object {
        finding: what,
        offset,
        key: key.and_then(|key| str::from_utf8(key).ok()),
        key_base64: key.filter(|key| str::from_utf8(key).is_err()).map(|key| BASE64_STANDARD.encode(key)),
        what: &finding.what,
    };
    write_line(list, &object)
}

/// A missing part of the journal, as an object in the list.
#[derive(Serialize)]
struct MissingObject<'a> {
    finding: &'static str,
    file: &'a str,
    what: &'a str,
}

fn print_missing(missing: &MissingFile, list: Option<&mut BufWriter<Output>>) -> io::Result<()> {
    let (finding, file) = (name(Weight::Lost), missing.path.to_string_lossy());
    unless_closed(writeln!(io::stdout(), "{finding} in {file}: {}", missing.what))?;
    list.map_or(Ok(()), |list| write_line(list, &MissingObject { finding, file: &file, what: &missing.what }))
}

fn write_line(list: &mut BufWriter<Output>, object: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *list, object)?;
    list.write_all(b"\n")
}
