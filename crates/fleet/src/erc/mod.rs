//! What a drive does about errors, and whether that suits the redundancy it belongs to.
