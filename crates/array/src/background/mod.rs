//! What the array does on its own account, beside its clients' requests.

pub(crate) mod resync;
