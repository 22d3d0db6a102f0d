//! `--engine`: which engine keeps a store that is made.

use clap::Args;
use hikv::{EngineKind, Options};
use server::Parameters;

use crate::failure::Failure;
use crate::given;

/// The option, as commands take it that make a store where there is none.
#[derive(Args)]
pub(crate) struct Kept {
    /// The engine of a new store, by default hikv; a store that is there has its own, and no other opens it
    #[arg(long, value_name = "NAME")]
    engine: Option<EngineKind>,
}

impl Kept {
    /// The options, with the engine that is asked for.
    pub(crate) fn options(&self, options: Options) -> Options {
        match self.engine {
            Some(engine) => options.engine(engine),
            None => options,
        }
    }

    /// The engine that is asked for.
    pub(crate) fn engine(&self) -> Option<EngineKind> {
        self.engine
    }

    /// Gives the option to a server's parameters.
    pub(crate) fn give(&self, parameters: &mut Parameters) -> Result<(), Failure> {
        given::text(parameters, "engine", self.engine.map(EngineKind::name))
    }

    /// What a server's parameters ask for.
    pub(crate) fn of(parameters: &Parameters) -> Result<Kept, Failure> {
        let name = parameters.value("engine").filter(|name| !name.is_empty());
        let engine = name.map(str::parse).transpose().map_err(|error| Failure::at("engine", error))?;
        Ok(Kept { engine })
    }
}
