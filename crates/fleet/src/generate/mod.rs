//! Made-up fleets: hours tables after the field study, and healthy or sick groups for detectors.

pub mod groups;
