//! Options of an opening.

use std::time::Duration;

use hikv::{Durability, EngineKind, Options};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The arguments of `Store`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Arguments {
    engine: Option<String>,
    create: bool,
    read_only: bool,
    durability: Option<String>,
    ordered: bool,
    region_bytes_max: Option<u64>,
    log_bytes_max: Option<u64>,
    read_cache_bytes: u64,
    sync_interval: Option<f64>,
    background_threads: Option<usize>,
}

impl Arguments {
    /// Returns the library's options.
    ///
    /// # Errors
    /// `ValueError` names the engine or durability that is unknown.
    pub(crate) fn options(self) -> PyResult<Options> {
        let mut options = Options::new()
            .create(self.create)
            .read_only(self.read_only)
            .ordered(self.ordered)
            .read_cache_bytes(self.read_cache_bytes);
        if let Some(name) = self.engine {
            let engine = name.parse::<EngineKind>();
            options = options.engine(engine.map_err(|error| PyValueError::new_err(error.to_string()))?);
        }
        if let Some(level) = self.durability {
            options = options.durability(match level.as_str() {
                "process" => Durability::Process,
                "buffered" => Durability::Buffered,
                "power" => Durability::Power,
                other => return Err(PyValueError::new_err(format!("'{other}' is no level of durability"))),
            });
        }
        if let Some(bytes) = self.region_bytes_max {
            options = options.region_bytes_max(bytes);
        }
        if let Some(seconds) = self.sync_interval {
            let interval = Duration::try_from_secs_f64(seconds);
            let wrong = |_| PyValueError::new_err(format!("{seconds} seconds is no interval of syncs"));
            options = options.sync_interval(interval.map_err(wrong)?);
        }
        Ok(options.tuning(|tuning| {
            let tuning = self.log_bytes_max.into_iter().fold(tuning, |tuning, bytes| tuning.log_bytes_max(bytes));
            self.background_threads.into_iter().fold(tuning, |tuning, count| tuning.background_threads(count))
        }))
    }
}
