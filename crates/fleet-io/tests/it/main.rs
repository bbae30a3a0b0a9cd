//! Files of fleets: made-up samples, and real ones.

mod bounds;
mod perseus;
mod samples;
