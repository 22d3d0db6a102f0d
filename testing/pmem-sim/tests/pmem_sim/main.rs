//! The crash media: hand-written histories, and every image that each may leave.

mod common;
mod disk;
mod line_images;
mod medium;
mod span_images;
