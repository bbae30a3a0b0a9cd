//! Files of fleets: made-up samples, and real ones.

mod perseus;
mod samples;
