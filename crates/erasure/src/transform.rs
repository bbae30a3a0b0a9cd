//! Encoding by an additive Fourier transform, for codes of several redundant symbols.
//!
//! Redundant symbols are `r(x) = sum over j of y_j d_j / (x + y_j)` at the points `x = 0, 1, ..`. Take
//! the subspace `V = {0, .. n - 1}`, with `n` a power of two that covers those points, and cut the data
//! into *cosets*: runs of `n` symbols whose points are `b + V`. The polynomial
//!
//! ```text
//!   s(x) = product over v in V of (x + v)           linear over GF(2), and 0 on all of V
//! ```
//!
//! makes a coset's share of `r` a polynomial on `V`, but for a plain sum: since `y = x + (x + y)`,
//!
//! ```text
//!   r(x) = D + x q(x)           D = sum over j of d_j           q(x) = sum over j of d_j / (x + y_j)
//! ```
//!
//! and `q`, multiplied by the product of all `x + y` over the coset, which is `s(x + b)` and there the
//! constant `s(b)`, is `k p` with the polynomial `p` of degree below `n` for which
//!
//! ```text
//!   p(y_j) = d_j           k = product of all v in V but 0
//! ```
//!
//! So each coset is interpolated and scaled by `k / s(b)`, and its coefficients are added to those of the
//! other cosets; at the end one evaluation on `V` gives all rows. In the basis of `[LCH14]` interpolating and
//! evaluating take `log n` layers of `n / 2` butterflies with one multiplication each:
//!
//! ```text
//!   evaluating     a' = a + t b    b' = b + a'          t = s_d(start of the butterflies' block) / s_d(2^d)
//!   interpolating  b' = a + b      a' = a + t b'
//! ```
//!
//! where `s_d` is the `s` of `{0, .. 2^d - 1}` and layer `d` has blocks of `2^(d + 1)` points. The last
//! layer scales what it gives. A symbol thus costs `1 + log n / 2` multiplications, where the matrix costs
//! one for each row. `D` costs next to nothing: before it is scaled, the last coefficient of a coset is the
//! sum of its symbols.
//!
//! # Where symbols of the tower field are bytes
//!
//! Numbers below 256 are the field GF(2^8), and by them both bytes of an element are multiplied alike, whichever is
//! which. `V` lies there, and with it the evaluation. Of the points `u + v Y` up to 1023, where `v` is below 4, only layers
//! 0 and 1 have multipliers outside GF(2^8): `s_1` takes a point there if `v` is below 2, and `s_2` if it is below 4. From layer 2
//! on a coset's symbols are bytes.
//!
//! # References
//!
//! - `[LCH14]` S. Lin, W. Chung, Y. Han, "Novel Polynomial Basis and Its Application to Reed-Solomon
//!   Erasure Codes", FOCS 2014.

use crate::fields::Field;
use crate::kernels::Kernel;
use crate::tower;

/// The least and the largest transform, by the logarithms of their sizes.
pub(crate) const LOG_MIN: usize = 2;
pub(crate) const LOG_MAX: usize = 5;

/// Multipliers in the order in which a kernel needs them, as elements of GF(2^8): one for each over
/// GF(2^8), four for each over the tower field (see [`Factors::push`]).
#[derive(Clone, Debug, Default)]
pub(crate) struct Factors {
    pub(crate) elements: Vec<u8>,
    /// The same as matrices of bits, for processors that multiply by those.
    #[cfg(target_arch = "x86_64")]
    pub(crate) matrices: Vec<u64>,
}

/// Some consecutive multipliers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FactorsRef<'a> {
    pub(crate) elements: &'a [u8],
    #[cfg(target_arch = "x86_64")]
    pub(crate) matrices: &'a [u64],
}

/// The interpolation of a coset, with the scaling.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interpolation<'a> {
    pub(crate) factors: FactorsRef<'a>,
    pub(crate) within: Within,
}

/// Which of a coset's multipliers all lie in GF(2^8).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Within {
    /// Those of the layers within runs of [`RUN`] symbols, but for the last layer of all.
    pub(crate) first: bool,
    /// All others.
    pub(crate) rest: bool,
}

/// The transform of one size for one code.
#[derive(Clone, Debug)]
pub(crate) struct Transform {
    pub(crate) field: Field,
    /// Binary logarithm of the size.
    pub(crate) log: usize,
    /// How many data symbols lie in cosets. The others, at the end, have points in `V` itself.
    pub(crate) covered: usize,
    /// For each coset the multipliers of its interpolation.
    cosets: Factors,
    within: Vec<Within>,
    /// The multipliers of the evaluation, as over GF(2^8).
    evaluation: Factors,
}

impl Factors {
    /// Over the tower field, multiplying `a + b Y` by `c + d Y` gives `(c a + L d b) + (d a + (c + d) b) Y`:
    /// `c`, `L d`, `d` and `c + d`.
    fn push(&mut self, field: Field, factor: u16) {
        let (c, d) = tower::split(factor);
        match field {
            Field::Bytes => self.push_element(c),
            Field::Tower => {
                let ld = tower::split(tower::multiply(tower::L.into(), d.into())).0;
                for element in [c, ld, d, c ^ d] {
                    self.push_element(element);
                }
            }
        }
    }

    fn push_element(&mut self, element: u8) {
        self.elements.push(element);
        #[cfg(target_arch = "x86_64")]
        self.matrices.push(crate::kernel::matrix::matrix_of(element));
    }

    fn slice(&self, start: usize, count: usize) -> FactorsRef<'_> {
        FactorsRef {
            elements: &self.elements[start..start + count],
            #[cfg(target_arch = "x86_64")]
            matrices: &self.matrices[start..start + count],
        }
    }
}

impl Transform {
    /// Transforms of size `2^log` for a code whose data symbol `j` has point `first_point + j`, for
    /// the first `covered` ones. `first_point` is a multiple of the size.
    pub(crate) fn new(field: Field, log: usize, first_point: usize, covered: usize) -> Self {
        let size = 1 << log;
        assert!((LOG_MIN..=LOG_MAX).contains(&log) && first_point.is_multiple_of(size));
        let subspaces = Subspaces::new(field, log);
        let (mut cosets, mut within) = (Factors::default(), Vec::new());
        for start in (first_point..first_point + covered).step_by(size) {
            within.push(subspaces.push_interpolation(&mut cosets, start));
        }
        let mut evaluation = Factors::default();
        subspaces.push_evaluation(&mut evaluation);
        Self { field, log, covered, cosets, within, evaluation }
    }

    /// Whether the kernel computes `row_count` rows faster by the transform than one by one.
    pub(crate) fn pays(&self, kernel: Kernel, row_count: usize) -> bool {
        // Tenths of the time of a product over GF(2^8), for a multiplication by each way. A transform moves
        // its symbols through memory, too, which is most of its time where a product is one instruction and
        // less where it is two lookups. Over the tower field a multiplication is three products by the matrix, and
        // by the transform mostly two. As measured with lookups, 5 rows over GF(2^8) gain 9 % and 4 nothing,
        // over the tower field 4 rows gain 19 % and 3 lose 8 %.
        let (by_transform, one_by_one) = match (self.field, kernel.multiplies_by_lookup()) {
            (Field::Bytes, false) => (40, 10),
            (Field::Bytes, true) => (16, 10),
            (Field::Tower, false) => (50, 30),
            (Field::Tower, true) => (40, 30),
        };
        by_transform * (2 + self.log) <= 2 * one_by_one * row_count.saturating_sub(1)
    }

    /// The multipliers of coset `coset`: for each run its butterflies, then the butterflies between the runs;
    /// last, for the last layer, `c` and `t c`, where `c` is the scale.
    pub(crate) fn coset(&self, coset: usize) -> Interpolation<'_> {
        let count = factor_len(self.field) << self.log;
        let factors = self.cosets.slice(coset * count, count);
        Interpolation { factors, within: self.within[coset] }
    }

    /// The multipliers of the evaluation: the butterflies between the runs, then those of each run; last, the
    /// points of all rows.
    pub(crate) fn evaluation(&self) -> FactorsRef<'_> {
        self.evaluation.slice(0, (2 << self.log) - 1)
    }
}

/// Elements of GF(2^8) that make up a multiplier.
pub(crate) const fn factor_len(field: Field) -> usize {
    match field {
        Field::Bytes => 1,
        Field::Tower => 4,
    }
}

/// Consecutive symbols of a coset that go through the first layers together.
pub(crate) const RUN: usize = 1 << RUN_LOG;

const RUN_LOG: usize = 2;

/// The subspaces `{0, .. 2^d - 1}` and their polynomials.
struct Subspaces {
    field: Field,
    log: usize,
    /// `s_d(2^d)`.
    tops: Vec<u16>,
    /// The product of all elements of the last one but 0.
    product: u16,
}

impl Subspaces {
    fn new(field: Field, log: usize) -> Self {
        let mut subspaces = Self { field, log, tops: Vec::new(), product: 1 };
        for d in 0..log {
            let top = subspaces.polynomial(d, 1 << d);
            subspaces.tops.push(top);
        }
        subspaces.product = (1..1 << log).fold(1, |product, v| field.multiply(product, v));
        subspaces
    }

    /// `s_d(x)`, by `s_(d + 1)(x) = s_d(x) (s_d(x) + s_d(2^d))`.
    fn polynomial(&self, d: usize, x: u16) -> u16 {
        self.tops[..d].iter().fold(x, |s, top| self.field.multiply(s, s ^ top))
    }

    /// `t` of the butterflies of layer `d` in the block that starts with this point.
    fn twist(&self, d: usize, start: usize) -> u16 {
        self.field.divide(self.polynomial(d, start as u16), self.tops[d])
    }

    /// `t` of all blocks of layer `d` among the `count` points from `start` on.
    fn twists(&self, d: usize, start: usize, count: usize) -> impl Iterator<Item = u16> {
        (start..start + count).step_by(2 << d).map(move |block| self.twist(d, block))
    }

    fn push_interpolation(&self, factors: &mut Factors, start: usize) -> Within {
        let (size, last) = (1 << self.log, self.log - 1);
        let mut within = Within { first: true, rest: true };
        let mut push = |within: &mut bool, factor| {
            *within &= tower::split(factor).1 == 0;
            factors.push(self.field, factor);
        };
        for first in (start..start + size).step_by(RUN) {
            for d in 0..RUN_LOG.min(last) {
                self.twists(d, first, RUN).for_each(|twist| push(&mut within.first, twist));
            }
        }
        for d in RUN_LOG..last {
            self.twists(d, start, size).for_each(|twist| push(&mut within.rest, twist));
        }
        let scale = self.field.divide(self.product, self.polynomial(self.log, start as u16));
        for factor in [scale, self.field.multiply(self.twist(last, start), scale)] {
            push(&mut within.rest, factor);
        }
        within
    }

    fn push_evaluation(&self, factors: &mut Factors) {
        let size = 1 << self.log;
        let mut push = |factor| factors.push(Field::Bytes, factor);
        for d in (RUN_LOG..self.log).rev() {
            self.twists(d, 0, size).for_each(&mut push);
        }
        for first in (0..size).step_by(RUN) {
            for d in (0..RUN_LOG).rev() {
                self.twists(d, first, RUN).for_each(&mut push);
            }
        }
        (0..size as u16).for_each(push);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which of the cosets of `covered` points have their first multipliers, and which the rest, in GF(2^8).
    fn within(log: usize, covered: usize) -> [Vec<bool>; 2] {
        let transform = Transform::new(Field::Tower, log, 1 << log, covered);
        let of_cosets = |of: fn(&Within) -> bool| transform.within.iter().map(of).collect();
        [of_cosets(|within| within.first), of_cosets(|within| within.rest)]
    }

    #[test]
    fn all_but_the_first_layers_lie_in_the_smaller_field_for_points_up_to_1023() {
        for log in LOG_MIN..=LOG_MAX {
            let size = 1 << log;
            let [first, rest] = within(log, 1024 - size);
            for (n, (first, rest)) in first.into_iter().zip(rest).enumerate() {
                let start = size * (n + 1);
                assert_eq!(first, start < 256, "log {log}, points from {start} on");
                // In a coset of a single run the rest is its second layer.
                assert_eq!(rest, log > LOG_MIN || start < 512, "log {log}, points from {start} on");
            }
            let [_, rest] = within(log, 2048 - size);
            assert!(rest[(1024 / size - 1)..].iter().any(|rest| !rest), "log {log}");
        }
    }

    #[test]
    fn the_evaluation_lies_in_the_smaller_field_whichever_the_code_is_over() {
        for log in LOG_MIN..=LOG_MAX {
            let [long, short] = [Field::Tower, Field::Bytes]
                .map(|field| Transform::new(field, log, 1 << log, 1 << log));
            assert_eq!(long.evaluation().elements, short.evaluation().elements);
        }
    }
}
