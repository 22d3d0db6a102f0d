//! Errors as exceptions, whose classes are in `python/hikv/_errors.py`.

use hikv::{BackupError, Error, MediumError, OpenError};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyModule;

static CLASSES: PyOnceLock<Py<PyModule>> = PyOnceLock::new();

/// Returns an exception of a class.
pub(crate) fn raised(class: &str, text: impl Into<String>) -> PyErr {
    Python::attach(|py| {
        let made = || -> PyResult<Bound<'_, PyAny>> {
            let classes = CLASSES.get_or_try_init(py, || py.import("hikv._errors").map(Bound::unbind))?;
            classes.bind(py).getattr(class)?.call1((text.into(),))
        };
        made().map_or_else(|error| error, PyErr::from_value)
    })
}

/// Returns the exception of an operation.
pub(crate) fn of(error: Error) -> PyErr {
    let class = match &error {
        Error::ConditionFailed { .. } => "ConditionFailed",
        Error::KeyTooLong { .. } | Error::ValueTooLong { .. } | Error::BatchTooLong { .. } => "TooLong",
        Error::Medium(error) if error.is_full() => "Full",
        Error::Medium(MediumError::ReadOnly) => "ReadOnly",
        Error::Medium(MediumError::OutOfBounds { .. }) | Error::Corrupt { .. } => "Damaged",
        Error::NoOrder | Error::Unsupported { .. } => "Unsupported",
        Error::Conflict => "Conflict",
        Error::Contended { .. } => "Contended",
        Error::Durability { .. } => "Durability",
        Error::NoSuchTree { .. } => "NoSuchTree",
        Error::TreeExists { .. } => "TreeExists",
        Error::NotANumber { .. } | Error::Overflow { .. } => "NotANumber",
        Error::Forked => "Forked",
        _ => "Error",
    };
    raised(class, error.to_string())
}

/// Returns the exception of an opening.
pub(crate) fn of_opening(error: OpenError) -> PyErr {
    let class = match &error {
        OpenError::Missing { .. } => "Missing",
        OpenError::Locked { .. } => "Locked",
        OpenError::Durability { .. } => "Durability",
        OpenError::Unusable { .. } | OpenError::Journal { .. } => "Damaged",
        OpenError::EngineNotBuilt { .. } => "Unsupported",
        OpenError::Option { .. } => return PyValueError::new_err(error.to_string()),
        _ => "Error",
    };
    raised(class, error.to_string())
}

/// Returns the exception of a backup.
pub(crate) fn of_backup(error: BackupError) -> PyErr {
    match error {
        BackupError::Open(error) => of_opening(error),
        BackupError::Read(error) => of(error),
        error => raised("Error", error.to_string()),
    }
}

/// Returns the exception of a handle that was closed.
pub(crate) fn closed() -> PyErr {
    raised("Closed", "the store, or this part of it, is closed")
}
