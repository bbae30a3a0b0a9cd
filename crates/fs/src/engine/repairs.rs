//! What is read for its own sake: a scrub.
