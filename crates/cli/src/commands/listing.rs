//! Items that a command writes out, one by one, until a signal comes or nobody reads them any more.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output;
use crate::progress::Progress;

/// What items are written to.
pub(super) type Out = BufWriter<Box<dyn Write>>;

/// Where the items go, and how many did.
pub(super) struct Listing<S = Out> {
    out: S,
    name: PathBuf,
    written: io::Result<()>,
    interrupt: Interrupt,
    progress: Progress,
}

impl Listing {
    /// Begins a listing, whose items are `verb`, in `file`, or on standard output. How far it is shows off a terminal
    /// `every` so often; not at all beside items on the same terminal.
    pub(super) fn begin(
        verb: &'static str,
        file: Option<&Path>,
        total: Option<u64>,
        every: Duration,
    ) -> Result<Listing, Failure> {
        let interrupt = Interrupt::install().map_err(Failure::at_signals)?;
        let out: Box<dyn Write> = match file {
            Some(file) => Box::new(output::create(file)?),
            None => Box::new(io::stdout().lock()),
        };
        let progress = match file.is_none() && io::stdout().is_terminal() {
            true => Progress::silent(verb),
            false => Progress::new(verb, total, every),
        };
        let name = file.unwrap_or(Path::new("standard output")).to_owned();
        Ok(Listing { out: BufWriter::new(out), name, written: Ok(()), interrupt, progress })
    }

    /// Ends the listing, and says how it went.
    pub(super) fn finish(self) -> Result<(), Failure> {
        self.finish_with(|mut out| out.flush())
    }
}

impl<S> Listing<S> {
    /// The same listing, with `wrap` around what items are written to.
    pub(super) fn wrapped<T>(self, wrap: impl FnOnce(S) -> io::Result<T>) -> Result<Listing<T>, Failure> {
        let Listing { out, name, written, interrupt, progress } = self;
        let out = wrap(out).map_err(Failure::output(name.display()))?;
        Ok(Listing { out, name, written, interrupt, progress })
    }

    /// Has `write` write the next item; says whether another one is wanted.
    pub(super) fn show(&mut self, write: impl FnOnce(&mut S) -> io::Result<()>) -> ControlFlow<()> {
        self.written = write(&mut self.out);
        let items = self.progress.items() + 1;
        self.progress.set(items, items);
        let stop = self.written.is_err() || self.interrupt.signal().is_some();
        if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Ends the listing with `end`, unless it was interrupted, and says how it went.
    pub(super) fn finish_with(self, end: impl FnOnce(S) -> io::Result<()>) -> Result<(), Failure> {
        self.written.map_err(Failure::output(self.name.display()))?;
        if let Some(signal) = self.interrupt.signal() {
            return Err(Failure::Interrupted { signal, done: self.progress.end() });
        }
        end(self.out).map_err(Failure::output(self.name.display()))?;
        self.progress.finish();
        Ok(())
    }
}
