//! Whom we are measured against, and ourselves.
//!
//! Each module answers for one: whether it can do an operation of a code, and a [`Coder`] that does
//! it over the pool's buffers, with everything that depends on the code or the erasure pattern
//! alone (tables, matrices, plans) made before the clock starts where the peer lets one.
//!
//! [`Coder`]: crate::measure::Coder

pub(crate) mod isal;
pub(crate) mod limit;
pub(crate) mod ours;
pub(crate) mod rs_simd;
pub(crate) mod rse;
pub(crate) mod streaming;
