//! Results on paper: tables, CSV, JSON, SVG figures and HTML pages from plain rows.
//!
//! This crate knows no domain: a caller brings names, numbers and sentences, and chooses the units
//! it wants printed. Everything is a value first ([`Table`], [`Figure`], [`Page`]) and becomes text
//! in one call; nothing here opens a file or knows a terminal.
//!
//! ```text
//!   rows ----> Table ---+--> to_text   for a terminal, aligned
//!                       +--> write_csv
//!                       +--> Page --> to_html   one file that answers, nothing loaded
//!   numbers -> Figure --+--> Page
//!                       +--> to_svg    one picture, readable on light and dark
//!   values --> json::pretty
//!   values --> bars                a plot of characters, for a terminal
//! ```
//!
//! # Invariants
//!
//! - P1. The same input gives the same bytes.
//! - P2. Text from the caller is never markup: `<`, `&`, quotes and control characters are escaped.
//! - P3. No number makes a figure fail: what cannot be drawn (not a number, nothing at all, zero on
//!   a logarithmic axis) is left out or drawn at the edge, and the figure says how many.
//!
//! It leaves out: interpolation of missing values, three dimensions, localisation.

#![forbid(unsafe_code)]

pub mod csv;
pub mod json;

mod figure;
mod markup;
mod page;
mod plot;
mod table;

pub use figure::{Axis, Figure, Interval, Scale, Series, Shading, Shape};
pub use page::Page;
pub use plot::bars;
pub use table::{Align, Column, Table};
