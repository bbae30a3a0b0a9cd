//! Swarms over arrays and filesystems, and their canaries.

mod crash;
mod expected;
mod files;
mod restarts;
mod swarm;
mod tails;
