//! Iterators over ranges, which read ahead in pages.

use std::ops::Bound as End;

use hikv::{Range, prefix_range};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::bytes;
use crate::slot::Owned;

/// The ends of a range.
pub(crate) type Bounds = (End<Vec<u8>>, End<Vec<u8>>);

/// Returns the range from `start` on and below `stop`, or that of a prefix.
///
/// # Errors
/// `TypeError`; `ValueError` for a prefix with ends.
pub(crate) fn bounds(
    start: Option<&Bound<'_, PyAny>>,
    stop: Option<&Bound<'_, PyAny>>,
    prefix: Option<&Bound<'_, PyAny>>,
) -> PyResult<Bounds> {
    match prefix {
        Some(_) if start.is_some() || stop.is_some() => {
            Err(PyValueError::new_err("a range has a prefix, or a start and a stop, not both"))
        }
        Some(prefix) => Ok(prefix_range(bytes::of(prefix)?)),
        None => {
            let low = bytes::optional(start)?.map_or(End::Unbounded, End::Included);
            Ok((low, bytes::optional(stop)?.map_or(End::Unbounded, End::Excluded)))
        }
    }
}

/// The part of an item that an iterator returns.
#[derive(Clone, Copy)]
pub(crate) enum Part {
    Key,
    Value,
    Item,
}

impl Part {
    /// Returns the part of this name.
    ///
    /// # Errors
    /// `ValueError`.
    pub(crate) fn named(name: &str) -> PyResult<Part> {
        match name {
            "keys" => Ok(Part::Key),
            "values" => Ok(Part::Value),
            "items" => Ok(Part::Item),
            other => Err(PyValueError::new_err(format!("'{other}' is no part of an item"))),
        }
    }

    fn read<'py>(self, py: Python<'py>, key: &[u8], value: &[u8]) -> Read<'py> {
        match self {
            Part::Key => Read::One(PyBytes::new(py, key)),
            Part::Value => Read::One(PyBytes::new(py, value)),
            Part::Item => Read::Both(PyBytes::new(py, key), PyBytes::new(py, value)),
        }
    }
}

/// A part that was read. `bytes` can be made in place; the collector may run when a tuple is made, and then finalizers,
/// which may wait for the iterator's slot.
enum Read<'py> {
    One(Bound<'py, PyBytes>),
    Both(Bound<'py, PyBytes>, Bound<'py, PyBytes>),
}

/// An iterator in the order of keys.
#[pyclass(frozen, module = "hikv._hikv")]
pub struct RangeIter {
    pub(crate) range: Owned<Range>,
    pub(crate) part: Part,
    pub(crate) is_back: bool,
}

#[pymethods]
impl RangeIter {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        // A page is read with the interpreter's lock: it has at most 64 KiB, and most items are in memory already.
        let read = self.range.with_mut(|range| {
            let item = if self.is_back { range.next_back_ref()? } else { range.next_ref()? };
            Ok(item.map(|(key, value)| self.part.read(py, key, value)))
        })?;
        Ok(match read {
            None => None,
            Some(Read::One(part)) => Some(part.into_any().unbind()),
            Some(Read::Both(key, value)) => Some(PyTuple::new(py, [key, value])?.into_any().unbind()),
        })
    }
}
