//! The cores on this machine: real clock, real files, emulated drives.
