//! A filesystem.
#![allow(dead_code)]
pub mod action;
mod attempt;
mod cache;
pub mod format;
pub mod geometry;
mod inodes;
#[cfg(test)]
mod made;
pub mod make;
pub mod request;
mod space;
mod tree;
