//! Keys and values: anything with the buffer protocol, but no text.

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

/// A key or value of a caller.
pub(crate) enum Bytes<'a> {
    Lent(&'a [u8]),
    Copied(Vec<u8>),
}

impl Bytes<'_> {
    #[inline(always)]
    pub(crate) fn as_slice(&self) -> &[u8] {
        match self {
            Bytes::Lent(bytes) => bytes,
            Bytes::Copied(bytes) => bytes,
        }
    }
}

impl AsRef<[u8]> for Bytes<'_> {
    #[inline(always)]
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}

/// Returns the bytes of an object. Those of `bytes` are not copied, because they never change.
///
/// # Errors
/// `TypeError`.
#[inline(always)]
pub(crate) fn of<'a>(object: &'a Bound<'_, PyAny>) -> PyResult<Bytes<'a>> {
    match object.cast::<PyBytes>() {
        Ok(bytes) => Ok(Bytes::Lent(bytes.as_bytes())),
        Err(_) => copied(object),
    }
}

#[cold]
fn copied(object: &Bound<'_, PyAny>) -> PyResult<Bytes<'static>> {
    let wrong = |what: &str| PyTypeError::new_err(format!("keys and values are bytes, not {what}"));
    if object.is_instance_of::<PyString>() {
        return Err(wrong("str; encode it first"));
    }
    let Ok(buffer) = PyBuffer::<u8>::get(object) else {
        return Err(wrong(&object.get_type().name()?.to_string_lossy()));
    };
    Ok(Bytes::Copied(buffer.to_vec(object.py())?))
}

/// Returns the bytes of an object, or nothing for `None`.
///
/// # Errors
/// `TypeError`.
pub(crate) fn optional(object: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Vec<u8>>> {
    object.map(|object| Ok(of(object)?.as_slice().to_vec())).transpose()
}
