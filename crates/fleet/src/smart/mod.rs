//! Pages of `smartctl`, read.
