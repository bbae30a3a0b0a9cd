//! Zipf's law over a table: place number `rank`, from 1 on, is asked for in proportion to `rank^-s`.

use levelhead_stats::Rng;

/// See the module. Which item has which rank is drawn.
#[derive(Debug)]
pub(super) struct Zipf {
    /// The probability of all ranks up to this one.
    up_to: Vec<f64>,
    items: Vec<u32>,
}

impl Zipf {
    /// `count` items with this exponent; `rng` shuffles them over the ranks.
    pub(super) fn new(count: u32, exponent: f64, rng: &mut Rng) -> Self {
        assert!(count > 0, "nothing to choose from");
        let mut sum = 0.0;
        let mut up_to: Vec<f64> = (1..=count)
            .map(|rank| {
                sum += f64::from(rank).powf(-exponent);
                sum
            })
            .collect();
        up_to.iter_mut().for_each(|all| *all /= sum);
        let mut items: Vec<u32> = (0..count).collect();
        for last in (1..items.len()).rev() {
            items.swap(last, rng.below(last as u64 + 1) as usize);
        }
        Self { up_to, items }
    }

    /// The item that is asked for.
    pub(super) fn draw(&self, rng: &mut Rng) -> u32 {
        let unit = rng.unit();
        let at = self.up_to.partition_point(|all| *all <= unit);
        self.items[at.min(self.items.len() - 1)]
    }
}

#[cfg(test)]
mod tests {
    use levelhead_stats::Streams;

    use super::*;

    /// Four standard errors around `rank^-s / sum`.
    #[test]
    fn ranks_are_asked_for_by_zipfs_law() {
        let streams = Streams::new(3);
        let (count, exponent, n) = (50_u32, 0.99, 200_000_u32);
        let zipf = Zipf::new(count, exponent, &mut streams.stream("items"));
        let mut rng = streams.stream("ranks");
        let mut seen = vec![0_u32; count as usize];
        (0..n).for_each(|_| seen[zipf.draw(&mut rng) as usize] += 1);
        let sum: f64 = (1..=count).map(|rank| f64::from(rank).powf(-exponent)).sum();
        for (rank, item) in (1..=count).zip(&zipf.items) {
            let law = f64::from(rank).powf(-exponent) / sum;
            let share = f64::from(seen[*item as usize]) / f64::from(n);
            let error = (law * (1.0 - law) / f64::from(n)).sqrt();
            assert!((share - law).abs() <= 4.0 * error, "rank {rank}: {share}, law {law}");
        }
        let mut items = zipf.items.clone();
        assert_ne!(items, (0..count).collect::<Vec<u32>>());
        items.sort_unstable();
        assert_eq!(items, (0..count).collect::<Vec<u32>>());
    }
}
