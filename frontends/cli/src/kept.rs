//! `--engine`: the engine of a new store.

use clap::Args;
use hikv::{EngineKind, Options};
use server::Parameters;

use crate::failure::Failure;
use crate::given;

/// The option of commands that create a store if none exists.
#[derive(Args)]
pub(crate) struct Kept {
    /// Engine of a new store [default: hikv]; an existing store opens only with its own engine
    #[arg(long, value_name = "NAME")]
    engine: Option<EngineKind>,
}

impl Kept {
    /// Adds the requested engine to the options.
    pub(crate) fn options(&self, options: Options) -> Options {
        match self.engine {
            Some(engine) => options.engine(engine),
            None => options,
        }
    }

    /// Returns the requested engine.
    pub(crate) fn engine(&self) -> Option<EngineKind> {
        self.engine
    }

    /// Sets the option in a server's parameters.
    pub(crate) fn give(&self, parameters: &mut Parameters) -> Result<(), Failure> {
        given::text(parameters, "engine", self.engine.map(EngineKind::name))
    }

    /// Reads the option from a server's parameters.
    pub(crate) fn of(parameters: &Parameters) -> Result<Kept, Failure> {
        let name = parameters.value("engine").filter(|name| !name.is_empty());
        let engine = name.map(str::parse).transpose().map_err(|error| Failure::at("engine", error))?;
        Ok(Kept { engine })
    }
}
