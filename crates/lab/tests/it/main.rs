//! Arrays, drives and filesystems in virtual time: swarms, their canaries, and the studies.

mod account;
mod catch_up;
mod conformance;
mod load;
mod mirrors;
mod papers;
mod planner_agrees;
mod power;
mod recorded;
mod silent;
mod studies;
mod verified;
mod verify;
mod verify_isolated;
mod zero_tails;
