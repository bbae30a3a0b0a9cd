//! Named random streams, distributions, quantiles and confidence intervals.
