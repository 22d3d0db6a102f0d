//! Snapshots.

use std::ops::Bound as End;
use std::sync::Arc;

use hikv::Snapshot as LibrarySnapshot;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::range::{Bounds, Part, RangeIter, bounds};
use crate::slot::{Owned, Slots};
use crate::store::Store;
use crate::{bytes, errors};

/// The store, or a tree, at one moment.
#[pyclass(subclass, frozen, mapping, module = "hikv._hikv")]
pub struct Snapshot {
    pub(crate) snapshot: Owned<LibrarySnapshot>,
    pub(crate) slots: Arc<Slots>,
}

impl Snapshot {
    fn range(&self, py: Python<'_>, bounds: Bounds, part: Part, is_back: bool) -> PyResult<RangeIter> {
        let range = self.snapshot.long(py, |snapshot| Ok(self.slots.add(snapshot.range(bounds)?)))?;
        Ok(RangeIter { range, part, is_back })
    }

    fn get_bytes(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Option<Py<PyBytes>>> {
        let key = bytes::of(key)?;
        self.snapshot.with(|snapshot| snapshot.get_in_place(key, |value| PyBytes::new(py, value).unbind()))
    }
}

#[pymethods]
impl Snapshot {
    /// Takes a snapshot of a store, or returns a snapshot's view of a tree.
    #[new]
    #[pyo3(signature = (source, name = None))]
    fn new(py: Python<'_>, source: &Bound<'_, PyAny>, name: Option<&str>) -> PyResult<Snapshot> {
        let Some(name) = name else { return source.cast::<Store>()?.get().snapshot(py) };
        let whole = source.cast::<Snapshot>()?.get();
        let tree = whole.snapshot.long(py, |snapshot| Ok(snapshot.tree(name)?.map(|tree| whole.slots.add(tree))))?;
        let tree = tree.ok_or_else(|| errors::raised("NoSuchTree", format!("the snapshot has no tree '{name}'")))?;
        Ok(Snapshot { snapshot: tree, slots: Arc::clone(&whole.slots) })
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.snapshot.long(py, |snapshot| {
            let mut count = 0;
            snapshot.for_each(|_, _| count += 1)?;
            Ok(count)
        })
    }

    fn __getitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Py<PyBytes>> {
        self.get_bytes(py, key)?.ok_or_else(|| PyKeyError::new_err(key.clone().unbind()))
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let key = bytes::of(key)?;
        self.snapshot.with(|snapshot| snapshot.contains(key))
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<RangeIter> {
        self.range(py, (End::Unbounded, End::Unbounded), Part::Key, false)
    }

    #[pyo3(signature = (key, default = None, /))]
    fn get(&self, py: Python<'_>, key: &Bound<'_, PyAny>, default: Option<Py<PyAny>>) -> PyResult<Option<Py<PyAny>>> {
        Ok(self.get_bytes(py, key)?.map(Py::into_any).or(default))
    }

    #[pyo3(signature = (part, start = None, stop = None, prefix = None, reverse = false))]
    fn _range(
        &self,
        py: Python<'_>,
        part: &str,
        start: Option<&Bound<'_, PyAny>>,
        stop: Option<&Bound<'_, PyAny>>,
        prefix: Option<&Bound<'_, PyAny>>,
        reverse: bool,
    ) -> PyResult<RangeIter> {
        self.range(py, bounds(start, stop, prefix)?, Part::named(part)?, reverse)
    }

    fn _count(
        &self,
        py: Python<'_>,
        start: Option<&Bound<'_, PyAny>>,
        stop: Option<&Bound<'_, PyAny>>,
        prefix: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<usize> {
        let bounds = bounds(start, stop, prefix)?;
        self.snapshot.long(py, |snapshot| {
            let mut range = snapshot.range(bounds)?;
            let mut count = 0;
            while range.next_ref()?.is_some() {
                count += 1;
            }
            Ok(count)
        })
    }

    /// Ends the snapshot.
    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(self.slots.take(&self.snapshot)));
    }
}
