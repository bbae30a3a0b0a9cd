//! What a block request is, and the two traits everything that stores sectors implements.
