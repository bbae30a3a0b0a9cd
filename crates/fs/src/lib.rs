//! A filesystem.
pub mod format;
pub mod geometry;
