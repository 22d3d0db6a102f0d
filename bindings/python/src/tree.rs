//! Trees: the operations on keys.

use std::ops::Bound as End;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

use hikv::{PutOptions, Tree as LibraryTree, Ttl};
use pyo3::exceptions::{PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::batch::Batch;
use crate::range::{Bounds, Part, RangeIter, bounds};
use crate::slot::{Owned, Slots};
use crate::store::Store;
use crate::{bytes, errors};

/// A tree of keys.
#[pyclass(subclass, frozen, mapping, module = "hikv._hikv")]
pub struct Tree {
    pub(crate) tree: Owned<LibraryTree>,
    pub(crate) slots: Arc<Slots>,
    /// Writes do not wait for a disk.
    pub(crate) is_in_memory: bool,
}

impl Tree {
    /// Runs a short write.
    fn write<R: Send>(
        &self,
        py: Python<'_>,
        write: impl FnOnce(&LibraryTree) -> Result<R, hikv::Error> + Send,
    ) -> PyResult<R> {
        if self.is_in_memory { self.tree.with(write) } else { self.tree.long(py, write) }
    }

    fn range(&self, py: Python<'_>, bounds: Bounds, part: Part, is_back: bool) -> PyResult<RangeIter> {
        let range = self.tree.long(py, |tree| Ok(self.slots.add(tree.range(bounds)?)))?;
        Ok(RangeIter { range, part, is_back })
    }
}

/// Returns the time to live of a call, in seconds.
pub(crate) fn ttl_of(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| PyValueError::new_err(format!("{seconds} seconds is no time to live")))
}

#[pymethods]
impl Tree {
    #[new]
    fn new(py: Python<'_>, store: &Store, name: &str, create: bool) -> PyResult<Tree> {
        let tree = store.tree(py, name, create)?;
        tree.ok_or_else(|| errors::raised("NoSuchTree", format!("the store has no tree '{name}'")))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.tree.long(py, |tree| tree.len())? as usize)
    }

    fn __getitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Py<PyBytes>> {
        let found = self.get_bytes(py, key)?;
        found.ok_or_else(|| PyKeyError::new_err(key.clone().unbind()))
    }

    fn __setitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let (key, value) = (bytes::of(key)?, bytes::of(value)?);
        self.write(py, |tree| tree.put(key, value))
    }

    fn __delitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        if self.delete(py, key)? { Ok(()) } else { Err(PyKeyError::new_err(key.clone().unbind())) }
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let key = bytes::of(key)?;
        self.tree.with(|tree| tree.contains(key))
    }

    /// Returns an iterator over the keys: in their order, if the engine has one.
    fn __iter__(&self, py: Python<'_>) -> PyResult<RangeIter> {
        self.range(py, (End::Unbounded, End::Unbounded), Part::Key, false)
    }

    #[pyo3(signature = (key, default = None, /))]
    fn get(&self, py: Python<'_>, key: &Bound<'_, PyAny>, default: Option<Py<PyAny>>) -> PyResult<Option<Py<PyAny>>> {
        Ok(self.get_bytes(py, key)?.map(Py::into_any).or(default))
    }

    /// Returns the values of several keys, `None` for each absent one.
    fn get_many<'py>(&self, py: Python<'py>, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let objects: Vec<Bound<'_, PyAny>> = keys.try_iter()?.collect::<PyResult<_>>()?;
        let keys: Vec<_> = objects.iter().map(bytes::of).collect::<PyResult<_>>()?;
        let mut values = Vec::with_capacity(keys.len());
        let found = |_, value: Option<&[u8]>| values.push(value.map(|value| PyBytes::new(py, value)));
        self.tree.with(|tree| tree.in_place().multi_get(&keys, found))?;
        PyList::new(py, values)
    }

    /// Copies the value into a buffer that can be written, as far as it fits, and returns its whole length.
    fn get_into(&self, key: &Bound<'_, PyAny>, buffer: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
        let target = pyo3::buffer::PyBuffer::<u8>::get(buffer)?;
        let place = target.as_slice_ptr().filter(|_| !target.readonly());
        let place = place.ok_or_else(|| PyTypeError::new_err("the buffer cannot be written, or has gaps"))?;
        let key = bytes::of(key)?;
        self.tree.with(|tree| {
            let copy = |value: &[u8]| {
                let copied = value.len().min(place.len());
                // SAFETY: `target` keeps so many bytes alive, which can be written and are no part of the store. A
                // thread that uses the buffer at the same time races, as with `readinto`.
                unsafe { place.cast::<u8>().copy_from_nonoverlapping(NonNull::from(value).cast(), copied) };
                value.len()
            };
            tree.in_place().get(key, copy)
        })
    }

    #[pyo3(signature = (key, value, *, ttl = None))]
    fn put(&self, py: Python<'_>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>, ttl: Option<f64>) -> PyResult<()> {
        let (key, value) = (bytes::of(key)?, bytes::of(value)?);
        match ttl.map(ttl_of).transpose()? {
            None => self.write(py, |tree| tree.put(key, value)),
            Some(ttl) => self.write(py, |tree| tree.put_with(key, value, PutOptions::new().ttl(ttl))),
        }
    }

    /// Puts the key if it is absent. Returns false if it is present.
    #[pyo3(signature = (key, value, *, ttl = None))]
    fn insert(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        ttl: Option<f64>,
    ) -> PyResult<bool> {
        let (key, value) = (bytes::of(key)?, bytes::of(value)?);
        let Some(ttl) = ttl.map(ttl_of).transpose()? else {
            return self.write(py, |tree| tree.insert_if_absent(key, value));
        };
        let put = |tree: &LibraryTree| match tree.put_with(key, value, PutOptions::new().expect_absent().ttl(ttl)) {
            Err(hikv::Error::ConditionFailed { .. }) => Ok(false),
            put => put.map(|()| true),
        };
        self.write(py, put)
    }

    /// Deletes the key. Returns false if it was absent.
    fn delete(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let key = bytes::of(key)?;
        self.write(py, |tree| tree.delete(key))
    }

    /// Adds to a number in decimal text, and returns the sum.
    #[pyo3(signature = (key, by = 1))]
    fn increment(&self, py: Python<'_>, key: &Bound<'_, PyAny>, by: i64) -> PyResult<i64> {
        let key = bytes::of(key)?;
        self.write(py, |tree| tree.increment(key, by))
    }

    /// Sets the value to `new` if it is `expected`; `None` stands for an absent key. Returns false if it is not.
    fn compare_and_swap(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        expected: Option<&Bound<'_, PyAny>>,
        new: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let (key, expected, new) = (bytes::of(key)?, bytes::optional(expected)?, bytes::optional(new)?);
        self.write(py, |tree| tree.compare_and_swap(key, expected.as_deref(), new.as_deref()))
    }

    /// Returns the seconds until the key expires, infinity if it does not, or `None` if it is absent.
    fn ttl(&self, key: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
        let key = bytes::of(key)?;
        let ttl = self.tree.with(|tree| tree.ttl(key))?;
        Ok(ttl.map(|ttl| if let Ttl::Left(left) = ttl { left.as_secs_f64() } else { f64::INFINITY }))
    }

    /// Changes the key's expiry; `None` removes it. Returns false if the key is absent.
    fn expire(&self, py: Python<'_>, key: &Bound<'_, PyAny>, ttl: Option<f64>) -> PyResult<bool> {
        let (key, ttl) = (bytes::of(key)?, ttl.map(ttl_of).transpose()?);
        let expires = ttl.map_or(hikv::Expires::Never, Into::into);
        self.write(py, |tree| tree.expire(key, expires))
    }

    /// Deletes the keys from `start` on and below `stop`, one by one, and returns their number.
    fn delete_range(
        &self,
        py: Python<'_>,
        start: Option<&Bound<'_, PyAny>>,
        stop: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<u64> {
        let bounds = bounds(start, stop, None)?;
        self.tree.long(py, |tree| tree.ordered()?.delete_range(bounds))
    }

    /// Deletes all keys in one step.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        self.tree.long(py, |tree| tree.clear())
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

    #[pyo3(signature = (start = None, stop = None, prefix = None))]
    fn _count(
        &self,
        py: Python<'_>,
        start: Option<&Bound<'_, PyAny>>,
        stop: Option<&Bound<'_, PyAny>>,
        prefix: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<u64> {
        let bounds = bounds(start, stop, prefix)?;
        self.tree.long(py, |tree| tree.ordered()?.count(bounds))
    }

    fn _write(&self, py: Python<'_>, batch: &Batch) -> PyResult<()> {
        let batch = batch.taken();
        self.tree.long(py, |tree| tree.write(&batch))
    }

    /// The tree's name, or `None` for the store's own keys and for a dropped tree.
    #[getter]
    fn name(&self) -> PyResult<Option<String>> {
        self.tree.with(|tree| Ok(tree.name()))
    }
}

impl Tree {
    #[inline(always)]
    fn get_bytes(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Option<Py<PyBytes>>> {
        let key = bytes::of(key)?;
        self.tree.with(|tree| tree.in_place().get(key, |value| PyBytes::new(py, value).unbind()))
    }
}
