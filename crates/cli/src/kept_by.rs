//! `--engine`: what keeps a store that a command makes.

use clap::Args;
use hikv::{EngineKind, Options};

/// The option, as commands take it.
#[derive(Args)]
pub(crate) struct KeptBy {
    /// The engine of a store that is made here: hikv or ink; a store that is there keeps its own, and must be of this one
    #[arg(long, value_name = "NAME")]
    engine: Option<EngineKind>,
}

impl KeptBy {
    /// The same options, with the engine that was asked for.
    pub(crate) fn options(&self, options: Options) -> Options {
        self.engine.map_or(options.clone(), |engine| options.engine(engine))
    }
}
