//! Trace readers, one file a format, and workload generators.
