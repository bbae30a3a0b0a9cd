//! A redundant array of drives as a state machine: layouts, reads, writes, queues and policies.
