//! Reed-Solomon codes over sectors: plan, encode, accumulate, update, reconstruct.
