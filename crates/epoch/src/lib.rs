//! hikv.
