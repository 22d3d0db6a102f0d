//! Writes items one by one to standard output or a file, until a signal arrives or the reader closes the output.

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::progress::Progress;

/// The writer of items.
pub(super) type Out = BufWriter<Sink>;

/// Standard output, or a file.
pub(super) enum Sink {
    Stdout(StdoutLock<'static>),
    File(Output),
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Sink::Stdout(out) => out.write(bytes),
            Sink::File(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Sink::Stdout(out) => out.flush(),
            Sink::File(out) => out.flush(),
        }
    }
}

/// A writer of items that counts them and shows the progress.
pub(super) struct Listing<S = Out> {
    out: S,
    name: PathBuf,
    written: io::Result<()>,
    interrupt: Interrupt,
    progress: Progress,
}

impl Listing {
    /// Begins a listing on standard output. `verb` describes it in messages, for example 'dumped'. Shows progress in
    /// this interval, but not if standard output is a terminal, where the items are.
    pub(super) fn begin(verb: &'static str, total: Option<u64>, every: Duration) -> Result<Listing, Failure> {
        let progress = match io::stdout().is_terminal() {
            true => Progress::silent(verb),
            false => Progress::new(verb, total, every),
        };
        Listing::to(Sink::Stdout(io::stdout().lock()), Path::new("standard output"), progress)
    }

    /// Like [`Listing::begin`], to a file, which is renamed to its path at the end.
    pub(super) fn begin_file(
        verb: &'static str,
        (file, name): (Output, &Path),
        total: Option<u64>,
        every: Duration,
    ) -> Result<Listing, Failure> {
        Listing::to(Sink::File(file), name, Progress::new(verb, total, every))
    }

    fn to(out: Sink, name: &Path, progress: Progress) -> Result<Listing, Failure> {
        let interrupt = Interrupt::install()?;
        let (out, name) = (BufWriter::new(out), name.to_owned());
        Ok(Listing { out, name, written: Ok(()), interrupt, progress })
    }

    /// Ends the listing and returns its result.
    pub(super) fn finish(self) -> Result<(), Failure> {
        self.finish_with(Ok)
    }

    /// Calls `write` for text that is not an item and not counted.
    pub(super) fn write(&mut self, write: impl FnOnce(&mut Out) -> io::Result<()>) {
        if self.written.is_ok() {
            self.written = write(&mut self.out);
        }
    }

    /// Returns the number of items so far.
    pub(super) fn items(&self) -> u64 {
        self.progress.items()
    }
}

impl<S> Listing<S> {
    /// Wraps the writer of the listing.
    pub(super) fn wrapped<T>(self, wrap: impl FnOnce(S) -> io::Result<T>) -> Result<Listing<T>, Failure> {
        let Listing { out, name, written, interrupt, progress } = self;
        let out = wrap(out).map_err(Failure::output(name.display()))?;
        Ok(Listing { out, name, written, interrupt, progress })
    }

    /// Calls `write` for the next item; returns `Break` after an error or a signal.
    pub(super) fn show(&mut self, write: impl FnOnce(&mut S) -> io::Result<()>) -> ControlFlow<()> {
        self.written = write(&mut self.out);
        let items = self.progress.items() + 1;
        self.progress.set(items, items);
        let stop = self.written.is_err() || self.interrupt.signal().is_some();
        if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Ends the listing with `end` unless it was interrupted, renames a file to its path, and returns the result.
    pub(super) fn finish_with(self, end: impl FnOnce(S) -> io::Result<Out>) -> Result<(), Failure> {
        self.written.map_err(Failure::output(self.name.display()))?;
        if let Some(signal) = self.interrupt.signal() {
            return Err(Failure::Interrupted { signal, done: self.progress.end() });
        }
        end(self.out).and_then(finish).map_err(Failure::output(self.name.display()))?;
        self.progress.finish();
        Ok(())
    }
}

/// Writes the rest of the buffer, and renames a file to its path.
fn finish(out: Out) -> io::Result<()> {
    match out.into_inner()? {
        Sink::Stdout(mut out) => out.flush(),
        Sink::File(file) => file.finish(),
    }
}
