//! Items that a command writes out, one by one, until a signal comes or nobody reads them any more.

use std::fs::File;
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
    /// The file, if it is one.
    file: Option<File>,
    name: PathBuf,
    written: io::Result<()>,
    interrupt: Interrupt,
    progress: Progress,
}

impl Listing {
    /// Begins a listing, whose items are `verb`, on standard output. How far it is shows off a terminal
    /// `every` so often; not at all beside items on the same terminal.
    pub(super) fn begin(verb: &'static str, total: Option<u64>, every: Duration) -> Result<Listing, Failure> {
        let progress = match io::stdout().is_terminal() {
            true => Progress::silent(verb),
            false => Progress::new(verb, total, every),
        };
        Listing::to(Box::new(io::stdout().lock()), Path::new("standard output"), progress)
    }

    /// As [`Listing::begin`], in a file, which is durable in the end.
    pub(super) fn begin_file(
        verb: &'static str,
        (file, name): (File, &Path),
        total: Option<u64>,
        every: Duration,
    ) -> Result<Listing, Failure> {
        let out = file.try_clone().map_err(Failure::at_path(name))?;
        let listing = Listing::to(Box::new(out), name, Progress::new(verb, total, every))?;
        Ok(Listing { file: Some(file), ..listing })
    }

    fn to(out: Box<dyn Write>, name: &Path, progress: Progress) -> Result<Listing, Failure> {
        let interrupt = Interrupt::install().map_err(Failure::at_signals)?;
        let (out, name) = (BufWriter::new(out), name.to_owned());
        Ok(Listing { out, file: None, name, written: Ok(()), interrupt, progress })
    }

    /// Ends the listing, and says how it went.
    pub(super) fn finish(self) -> Result<(), Failure> {
        self.finish_with(|mut out| out.flush())
    }
}

impl<S> Listing<S> {
    /// The same listing, with `wrap` around what items are written to.
    pub(super) fn wrapped<T>(self, wrap: impl FnOnce(S) -> io::Result<T>) -> Result<Listing<T>, Failure> {
        let Listing { out, file, name, written, interrupt, progress } = self;
        let out = wrap(out).map_err(Failure::output(name.display()))?;
        Ok(Listing { out, file, name, written, interrupt, progress })
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
        let ended = end(self.out).and_then(|()| self.file.as_ref().map_or(Ok(()), output::sync));
        ended.map_err(Failure::output(self.name.display()))?;
        self.progress.finish();
        Ok(())
    }
}
