//! Reed-Solomon codes over sectors: plan, encode, accumulate, update, reconstruct.
//!
//! A *codeword* is a row of equally long *symbols* (a sector, a chunk, any run of bytes), first
//! `data` of them, then `redundant` more that are combinations of the data. Any `data` symbols of
//! a codeword determine all others: the code is *maximum distance separable* (MDS), so it survives
//! the loss of any `redundant` symbols.
//!
//! Up to 256 symbols, every byte position is a codeword of its own over GF(2^8), the field of 256
//! elements with the polynomial `0x11d`; addition is xor. Longer codewords, up to 65,536 symbols, are
//! over the *tower field* GF((2^8)^2), whose elements are pairs of bytes `a + b Y` with `Y^2 = Y + L`:
//! in each block of 128 bytes of a symbol, byte `n` is `a` and byte `64 + n` is `b` of element `n`.
//! [`Code::new`] takes the field that the length needs.
//!
//! Deciding and computing are apart. [`Code::rows`] is the plan: which symbols to read and with
//! which coefficients; it touches no byte. [`combine`] is the arithmetic and decides nothing. A
//! policy can therefore hold the plan, a runtime carry it out, and a timing study skip it.
//!
//! ```text
//!   erased, wanted    --> Code::plan --> DecodePlan { sources, weights } --> DecodePlan::run --> bytes
//!   available, wanted --> Code::rows --> Rows { sources, coefficients }  --> combine         --> bytes
//!   all data         --> Code::encode      redundant  = C * data
//!   data as it comes --> Code::accumulate  redundant ^= C[.., columns] * data
//!   old xor new      --> Code::update      redundant ^= C[.., column] * difference
//! ```
//!
//! ```
//! use levelhead_erasure::{Code, Kernel, Symbol};
//!
//! let code = Code::new(2, 1)?;
//! let (left, right, mut parity) = (*b"left ", *b"right", [0; 5]);
//! code.encode(Kernel::best(), &[&left, &right], &mut [&mut parity])?;
//!
//! let mut rebuilt = [0; 5];
//! code.reconstruct(
//!     Kernel::best(),
//!     &mut [Symbol::Available(&left), Symbol::Wanted(&mut rebuilt), Symbol::Available(&parity)],
//! )?;
//! assert_eq!(rebuilt, right);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How a computation is done
//!
//! Wherever a [`Kernel`] is asked for, [`Choices`] may be given: for each [`Class`] of computations the
//! instructions, the order in which sources are visited, the width, how far ahead they are fetched, and
//! whether results go past the cache. The bytes are the same; what is fastest depends on the machine.
//! [`measure`] finds that out within some milliseconds, by a clock that its caller lends: nothing here
//! has one of its own.
//!
//! # The matrix
//!
//! Fixed for good, because it is on disk; `docs/formats/codeword.md` is the normative text and has
//! test vectors. Every symbol owns a *point*, an element of the field. With `2^p` the least power of
//! two that is at least `redundant`:
//!
//! ```text
//!   x_i = i                       redundant symbol i
//!   y_j = 2^p + j                 data symbol j, while that is below 256,
//!         then redundant, redundant + 1, .. 2^p - 1
//!   c(i, j) = y_j / (x_i + y_j)   the coefficient of data symbol j in redundant symbol i
//! ```
//!
//! `1 / (x_i + y_j)` is a Cauchy matrix, and `y_j` scales each column so that its first row, where
//! `x_0 = 0`, is all ones: redundant symbol 0 is the plain xor of the data. The points are distinct,
//! so every square submatrix of the Cauchy matrix has an inverse; `y_j` is never 0 (0 is `x_0`), so
//! scaling by it changes nothing about that. And a systematic code is MDS exactly when every square
//! submatrix of its redundant rows has an inverse.
//!
//! Over the tower field the same holds with 65,536 in place of 256.
//!
//! The redundant points lie in the subspace `{0, .. 2^p - 1}`, and the data points in its cosets. So
//! codes of many redundant symbols are encoded by a transform, with far fewer multiplications than
//! their matrix has elements and with the same result: see the module `transform`.
//!
//! # How a plan is made
//!
//! With `e` data symbols lost, take the first `e` redundant symbols that are available. Each one
//! xored with its row's share of the surviving data leaves a *syndrome*, a combination of the lost
//! data alone, and the `e` by `e` matrix of those combinations is again a scaled Cauchy matrix, whose
//! inverse is a formula. So a [`DecodePlan`] costs some `e^2` multiplications, and [`Rows`] as many as they
//! have coefficients, not the cube of `data` that inverting a matrix of that size would.
//!
//! # Invariants
//!
//! - R1. Any `data` symbols of a codeword determine all others (MDS).
//! - R2. A plan lists a source only if some coefficient on it is not 0, and solves with as few
//!   redundant symbols as can do.
//! - R3. With one data symbol lost and redundant symbol 0 available, every coefficient is 1.
//! - R4. All kernels and all [`Choice`]s give the same bytes; [`Kernel::Naive`] says which.
//! - R5. Encoding, accumulating, updating, combining and running a plan allocate nothing (plans
//!   that copy some symbols and compute others may make one list; see [`DecodePlan::run`]).
//! - R6. Wrong counts, lengths and positions are a [`UseError`], and no buffer has changed then. Only
//!   what stands for an operator panics, as an index out of range does: `coefficient`, [`SymbolSet`],
//!   and [`sum`] and [`add_sum`] of slices of different lengths.
//!
//! # What it leaves out
//!
//! Transforms for more than 32 redundant symbols, and kernels for other processors than `x86_64`:
//! those run the portable one.
//!
//! # References
//!
//! - `[RS60]` I. S. Reed and G. Solomon, "Polynomial Codes over Certain Finite Fields", J. SIAM
//!   8(2), 1960.
//! - `[LCH14]` S. Lin, W. Chung, Y. Han, "Novel Polynomial Basis and Its Application to Reed-Solomon
//!   Erasure Codes", FOCS 2014.
//! - `[Blo95]` J. Blömer et al., "An XOR-Based Erasure-Resilient Coding Scheme", ICSI TR-95-048,
//!   1995. Cauchy matrices for erasure codes, and their inverse.
//! - `[MS77]` F. J. MacWilliams and N. J. A. Sloane, "The Theory of Error-Correcting Codes", 1977,
//!   ch. 11, theorem 8: MDS if and only if every square submatrix has an inverse.

#![deny(unsafe_code)]

mod choice;
mod code;
mod error;
mod field;
mod fields;
mod interpolate;
mod kernel;
mod kernels;
mod locate;
mod measure;
mod operations;
mod plan;
mod rows;
mod set;
mod tower;
mod transform;

pub use choice::{Choice, Choices, Class, Order, Place, Stores, Width};
pub use code::Code;
pub use error::{CodeError, Role, TooFewSymbols, UseError};
pub use fields::Field;
pub use kernel::{add_sum, combine, sum};
pub use kernels::{Kernel, UnknownKernel};
pub use measure::{Measured, MeasuredClass, Measurement, measure};
pub use operations::Symbol;
pub use plan::DecodePlan;
pub use rows::Rows;
pub use set::{SymbolSet, Symbols};
