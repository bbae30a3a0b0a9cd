//! The array against plain memory, over drives whose order of finishing is the test's choice.

mod differential;
mod interleaving;
mod late;
mod runtime;
mod trouble;
