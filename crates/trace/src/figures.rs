//! A trace in a few figures.

use levelhead_units::{Bytes, Nanos, Ratio};

use crate::{Kind, Trace};

/// A trace in a few figures, of the requests as the file has them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// How many requests.
    pub requests: u64,
    /// The share of reads.
    pub reads: Ratio,
    /// The time from the first request to the last.
    pub span: Nanos,
    /// The mean time between requests, rounded down.
    pub interval_mean: Nanos,
    /// The mean size, rounded down.
    pub size_mean: Bytes,
    /// The median size.
    pub size_p50: Bytes,
    /// The 99th percentile of the sizes.
    pub size_p99: Bytes,
}

impl Trace {
    /// The trace in a few figures; all zero if it has no requests.
    pub fn figures(&self) -> Figures {
        let requests = self.records.len() as u64;
        let reads = self.records.iter().filter(|record| record.kind == Kind::Read).count();
        let mut sizes: Vec<Bytes> = self.records.iter().map(|record| record.length).collect();
        sizes.sort_unstable();
        let total: u128 = sizes.iter().map(|size| u128::from(size.get())).sum();
        let mean = total.checked_div(u128::from(requests)).unwrap_or(0);
        let gaps = requests.saturating_sub(1);
        Figures {
            requests,
            reads: Ratio::of(reads as u64, requests),
            span: self.span(),
            interval_mean: Nanos::new(self.span().get().checked_div(gaps).unwrap_or(0)),
            size_mean: Bytes::new(u64::try_from(mean).expect("a mean is at most the largest")),
            size_p50: percentile(&sizes, 50),
            size_p99: percentile(&sizes, 99),
        }
    }
}

/// The smallest size that at least `percent` of 100 requests do not exceed; none for no requests.
fn percentile(sorted: &[Bytes], percent: usize) -> Bytes {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;
    use crate::formats::testing::read_as;

    #[test]
    fn figures_are_those_of_the_file() {
        let lines: String =
            (1..=200).map(|n| format!("{} 0 0 {n} {}\n", n * 1000, n % 4 / 3)).collect();
        let figures = read_as(Format::Ssdsim, lines.as_bytes()).figures();
        assert_eq!(figures.requests, 200);
        assert_eq!(figures.reads, Ratio::of(1, 4));
        assert_eq!(figures.span, Nanos::new(199_000));
        assert_eq!(figures.interval_mean, Nanos::new(1000));
        assert_eq!(figures.size_mean, Bytes::new(51_456)); // 100.5 sectors of 512
        assert_eq!(figures.size_p50, Bytes::new(100 * 512));
        assert_eq!(figures.size_p99, Bytes::new(198 * 512));
    }

    #[test]
    fn an_emptied_trace_has_figures_too() {
        let mut trace = read_as(Format::Ssdsim, b"5 0 0 8 1\n");
        assert_eq!(trace.figures().interval_mean, Nanos::ZERO);
        trace.records.clear();
        assert_eq!(trace.figures().requests, 0);
        assert_eq!(trace.figures().size_p99, Bytes::new(0));
    }
}
