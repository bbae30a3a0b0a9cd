//! Swarms over arrays and filesystems, and their canaries.

mod crash;
mod expected;
mod files;
mod restarts;
mod rot;
mod search;
mod swarm;
mod tails;
