//! Virtual time: a clock, an event queue, and a hash of everything that happened.
