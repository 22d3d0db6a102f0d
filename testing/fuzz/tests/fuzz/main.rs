//! The fuzz targets, for a short time.

mod requests;
mod slice;
