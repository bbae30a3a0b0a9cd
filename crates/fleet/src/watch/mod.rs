//! The verdicts of one host as it runs: `handle_sample` and `poll`.
