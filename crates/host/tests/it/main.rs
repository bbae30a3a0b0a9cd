//! Whole arrays on real files: made, assembled, served, broken and stopped.

mod assembling;
mod creating;
mod serving;
mod shrinking;
mod support;
mod verifying;
