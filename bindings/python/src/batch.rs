//! Several changes as one step.

use hikv::WriteBatch;
use parking_lot::Mutex;
use pyo3::prelude::*;

use crate::bytes;
use crate::tree::{Tree, ttl_of};

/// Changes that a store applies as one step.
#[pyclass(subclass, frozen, module = "hikv._hikv")]
pub struct Batch(Mutex<WriteBatch>);

impl Batch {
    /// Returns the changes, and keeps none.
    pub(crate) fn taken(&self) -> WriteBatch {
        std::mem::take(&mut *self.0.lock())
    }
}

#[pymethods]
impl Batch {
    #[new]
    #[pyo3(signature = (*_arguments))]
    fn new(_arguments: &Bound<'_, pyo3::types::PyTuple>) -> Batch {
        Batch(Mutex::default())
    }

    #[pyo3(signature = (key, value, *, ttl = None))]
    fn put(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>, ttl: Option<f64>) -> PyResult<()> {
        let (key, value) = (bytes::of(key)?, bytes::of(value)?);
        let options = ttl.map(ttl_of).transpose()?.into_iter().fold(hikv::PutOptions::new(), hikv::PutOptions::ttl);
        self.0.lock().put_with(key, value, options);
        Ok(())
    }

    fn delete(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let key = bytes::of(key)?;
        self.0.lock().delete(key);
        Ok(())
    }

    /// Applies the batch only if the key is absent.
    fn expect_absent(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let key = bytes::of(key)?;
        self.0.lock().expect_absent(key);
        Ok(())
    }

    /// Lets further changes apply to another tree.
    fn tree(&self, tree: &Tree) -> PyResult<()> {
        tree.tree.with(|tree| {
            self.0.lock().tree(tree);
            Ok(())
        })
    }

    fn clear(&self) {
        self.0.lock().clear();
    }

    fn __len__(&self) -> usize {
        self.0.lock().len()
    }
}
