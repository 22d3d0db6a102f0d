//! The fuzz targets, for a short while.

mod requests;
mod slice;
