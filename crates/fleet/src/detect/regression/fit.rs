//! Which points are normal, and the upper bound of their latency at a load.

/// How near neighbours are, in standard deviations of either axis. PERSEUS takes 0.125 for samples of 15 s; windows are 20 times fewer,
/// and as many neighbours are in a circle of about 20 times its area.
pub(super) const EPS: f64 = 0.5;
/// How many points, itself among them, a core point has so near.
pub(super) const NEIGHBOURS: usize = 5;
/// Degree of the polynomial.
pub(super) const DEGREE: usize = 4;
/// Standard errors of a point above the fit: the upper end of a two-sided 95 %.
pub(super) const ERRORS: f64 = 1.96;

const TERMS: usize = DEGREE + 1;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) load: f64,
    pub(super) latency: f64,
}

/// The points of the largest cluster; of equal ones the one that has the lowest latency. None if there is no cluster.
pub(super) fn normal_points(points: &[Point]) -> Option<Vec<Point>> {
    let load = standardised(points.iter().map(|point| point.load));
    let latency = standardised(points.iter().map(|point| point.latency));
    let is_near = |a: usize, b: usize| {
        (load[a] - load[b]).powi(2) + (latency[a] - latency[b]).powi(2) <= EPS * EPS
    };
    let all = 0..points.len();
    let is_core: Vec<bool> = all
        .clone()
        .map(|a| all.clone().filter(|&b| is_near(a, b)).take(NEIGHBOURS).count() == NEIGHBOURS)
        .collect();
    let mut is_seen = vec![false; points.len()];
    let mut largest: Vec<usize> = Vec::new();
    let lowest = |cluster: &[usize]| {
        cluster.iter().map(|&idx| points[idx].latency).fold(f64::INFINITY, f64::min)
    };
    for first in all.clone().filter(|&idx| is_core[idx]) {
        if is_seen[first] {
            continue;
        }
        let mut cluster = vec![first];
        is_seen[first] = true;
        let mut next = 0;
        while next < cluster.len() {
            let from = cluster[next];
            next += 1;
            // A point at the edge belongs to the cluster and does not lead on.
            for to in all.clone().filter(|&to| is_core[from] && is_near(from, to)) {
                if is_core[to] && !is_seen[to] {
                    is_seen[to] = true;
                    cluster.push(to);
                }
            }
        }
        let is_larger = cluster.len() > largest.len()
            || (cluster.len() == largest.len() && lowest(&cluster) < lowest(&largest));
        if is_larger {
            largest = cluster;
        }
    }
    let is_normal = |&idx: &usize| largest.iter().any(|&core| is_near(core, idx));
    let normal: Vec<Point> = all.filter(is_normal).map(|idx| points[idx]).collect();
    (!normal.is_empty()).then_some(normal)
}

/// Values less their mean, over their standard deviation; zeroes if they are all equal.
fn standardised(values: impl ExactSizeIterator<Item = f64> + Clone) -> Vec<f64> {
    let count = values.len() as f64;
    let mean = values.clone().sum::<f64>() / count;
    let deviation =
        (values.clone().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt();
    let scale = if deviation > 0.0 { 1.0 / deviation } else { 0.0 };
    values.map(|value| (value - mean) * scale).collect()
}

/// A polynomial of the load, and how far above it a point may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    low: f64,
    high: f64,
    weights: [f64; TERMS],
    /// Lower triangle `L` of the points' second moments, `L L'`.
    factor: [[f64; TERMS]; TERMS],
    residual: f64,
}

impl Bound {
    /// By least squares; none if there are too few loads that differ.
    pub(super) fn fit(points: &[Point]) -> Option<Self> {
        if points.len() <= TERMS {
            return None;
        }
        let low = points.iter().map(|point| point.load).fold(f64::INFINITY, f64::min);
        let high = points.iter().map(|point| point.load).fold(f64::NEG_INFINITY, f64::max);
        let mut bound =
            Self { low, high, weights: [0.0; TERMS], factor: [[0.0; TERMS]; TERMS], residual: 0.0 };
        let (mut moments, mut right) = ([[0.0; TERMS]; TERMS], [0.0; TERMS]);
        for point in points {
            let terms = bound.terms(point.load);
            for row in 0..TERMS {
                right[row] += terms[row] * point.latency;
                for column in 0..TERMS {
                    moments[row][column] += terms[row] * terms[column];
                }
            }
        }
        bound.factor = cholesky(&moments)?;
        bound.weights = backward(&bound.factor, &forward(&bound.factor, &right));
        let square = |point: &Point| (point.latency - bound.mean(&bound.terms(point.load))).powi(2);
        let squares: f64 = points.iter().map(square).sum();
        bound.residual = (squares / (points.len() - TERMS) as f64).sqrt();
        bound.residual.is_finite().then_some(bound)
    }

    /// The bound at a load: at the nearest one fitted, if it is outside of those. Above 0.
    pub(super) fn at(&self, load: f64) -> f64 {
        let terms = self.terms(load.clamp(self.low, self.high));
        let leverage: f64 = forward(&self.factor, &terms).iter().map(|part| part * part).sum();
        let bound = self.mean(&terms) + ERRORS * self.residual * (1.0 + leverage).sqrt();
        bound.max(f64::MIN_POSITIVE)
    }

    /// Chebyshev polynomials of the load, from -1 to 1 over those fitted.
    fn terms(&self, load: f64) -> [f64; TERMS] {
        let width = self.high - self.low;
        let x = if width > 0.0 { 2.0 * (load - self.low) / width - 1.0 } else { 0.0 };
        let mut terms = [1.0; TERMS];
        terms[1] = x;
        for term in 2..TERMS {
            terms[term] = 2.0 * x * terms[term - 1] - terms[term - 2];
        }
        terms
    }

    fn mean(&self, terms: &[f64; TERMS]) -> f64 {
        self.weights.iter().zip(terms).map(|(weight, term)| weight * term).sum()
    }
}

/// None for a matrix that is not safely positive definite.
fn cholesky(matrix: &[[f64; TERMS]; TERMS]) -> Option<[[f64; TERMS]; TERMS]> {
    let mut factor = [[0.0; TERMS]; TERMS];
    for row in 0..TERMS {
        for column in 0..=row {
            let known: f64 = (0..column).map(|at| factor[row][at] * factor[column][at]).sum();
            let rest = matrix[row][column] - known;
            if row > column {
                factor[row][column] = rest / factor[column][column];
            } else if rest > 1e-9 * matrix[row][row] {
                factor[row][row] = rest.sqrt();
            } else {
                return None;
            }
        }
    }
    Some(factor)
}

fn forward(factor: &[[f64; TERMS]; TERMS], right: &[f64; TERMS]) -> [f64; TERMS] {
    let mut solved = [0.0; TERMS];
    for row in 0..TERMS {
        let known: f64 = (0..row).map(|at| factor[row][at] * solved[at]).sum();
        solved[row] = (right[row] - known) / factor[row][row];
    }
    solved
}

fn backward(factor: &[[f64; TERMS]; TERMS], right: &[f64; TERMS]) -> [f64; TERMS] {
    let mut solved = [0.0; TERMS];
    for row in (0..TERMS).rev() {
        let known: f64 = (row + 1..TERMS).map(|at| factor[at][row] * solved[at]).sum();
        solved[row] = (right[row] - known) / factor[row][row];
    }
    solved
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(load: f64) -> f64 {
        100.0 + 3.0 * load - 0.5 * load.powi(2) + 0.01 * load.powi(4)
    }

    #[test]
    fn a_polynomial_is_found_again() {
        let points: Vec<Point> = (0..50)
            .map(|step| f64::from(step) * 0.1)
            .map(|load| Point { load, latency: curve(load) })
            .collect();
        let bound = Bound::fit(&points).unwrap();
        for load in [0.0, 1.234, 4.9] {
            assert!((bound.at(load) - curve(load)).abs() < 1e-6);
        }
        assert!((bound.at(100.0) - curve(4.9)).abs() < 1e-6);
    }

    #[test]
    fn what_lies_apart_is_left_out() {
        let mut points: Vec<Point> =
            (0..60).map(|step| Point { load: f64::from(step) * 0.01, latency: 100.0 }).collect();
        points.push(Point { load: 0.3, latency: 500.0 });
        let normal = normal_points(&points).unwrap();
        assert_eq!(normal.len(), 60);
        assert!(Bound::fit(&points[..3]).is_none());
        let same = [Point { load: 1.0, latency: 2.0 }; 20];
        assert!(Bound::fit(&same).is_none());
    }
}
