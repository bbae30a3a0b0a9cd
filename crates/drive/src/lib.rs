//! One hard disk as a state machine: geometry, mechanics, queue, faults and retries.
