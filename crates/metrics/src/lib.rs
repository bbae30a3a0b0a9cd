//! Metrics for those who collect them over HTTP: OpenMetrics 1.0, and the text format 0.0.4 of Prometheus for
//! clients that would rather have that.
//!
//! ```text
//!   collector --GET /metrics--> [ http: strict, bounded ] --Source--> Vec<Family>
//!             <-- text -------- [ exposition, accept    ] <--------------'
//! ```
//!
//! A [`Family`] is one metric with its series; an [`Exposition`] writes families as text; a [`Server`] asks its
//! source for them at every scrape. What is measured, and that asking for it takes a limited time, is the source's affair.
//!
//! References: the OpenMetrics specification 1.0.0; "Exposition formats" of the Prometheus documentation;
//! RFC 9110 and RFC 9112 for HTTP.
//!
//! It leaves out: persistent connections, compression, TLS, exemplars, timestamps.

#![forbid(unsafe_code)]

mod accept;
mod address;
mod exposition;
mod family;
mod request;
mod server;

pub use address::Address;
pub use exposition::{Exposition, Format};
pub use family::{Family, Kind, Series, Value};
pub use server::{Running, Server, Source};
