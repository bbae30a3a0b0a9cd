//! What the client said, as figures.

use levelhead_stats::Summary;
use levelhead_units::Nanos;

/// Beyond this share of all reads without an answer at the end, a system may be overloaded.
const UNFINISHED_SHARE: f64 = 0.05;

/// A system that answers less than this share of what is asked of it, in the second half of a run,
/// may fall behind.
const ANSWERED_SHARE: f64 = 0.95;

/// And does, if it answers fewer by so many standard deviations of the number asked, which is Poisson's:
/// less is chance in a short run.
const DEVIATIONS: f64 = 3.0;

/// What became of every read of one run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Sample {
    /// When each read was due after the start, and what became of it.
    ends: Vec<(Nanos, End)>,
    /// From when a read was due until it was sent.
    wakes: Vec<Nanos>,
}

/// What became of one read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Answered so long after it was due.
    Answered(Nanos),
    /// So old at the end of the run.
    Waits(Nanos),
    Failed,
}

/// Figures of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Figures {
    /// Over all reads: from when it was due until the answer, or until the end of the run.
    pub(crate) latency: Summary,
    pub(crate) unfinished: u64,
    pub(crate) wake: Summary,
    pub(crate) pace: Pace,
}

/// Whether a system answers as fast as it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    Keeps,
    /// It falls behind ever more, so that its latencies are the run's length and nothing else.
    Overloaded,
}

impl Sample {
    /// From the client's lines, `begin` and `end` among them.
    pub(crate) fn parse<'a>(lines: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let mut lines = lines.into_iter();
        let begin = lines.next().unwrap_or_default();
        let count = begin.strip_prefix("begin ").and_then(|count| count.parse().ok());
        let count: usize = count.ok_or_else(|| format!("expected 'begin COUNT', got '{begin}'"))?;
        let mut sample = Self::default();
        for line in lines {
            if line == "end" {
                return if sample.ends.len() == count {
                    Ok(sample)
                } else {
                    Err(format!("the client told of {} of {count} reads", sample.ends.len()))
                };
            }
            sample.take(line).ok_or_else(|| format!("'{line}' says nothing about a read"))?;
        }
        Err("the client did not come to its end".to_owned())
    }

    /// Reads one line.
    fn take(&mut self, line: &str) -> Option<()> {
        let micros = |text: &str| text.parse().ok().map(Nanos::from_micros);
        let words: Vec<&str> = line.split(' ').collect();
        let (due, end) = match words[..] {
            ["read", due, latency, wake] => {
                self.wakes.push(micros(wake)?);
                (due, End::Answered(micros(latency)?))
            }
            ["waits", due, age] => (due, End::Waits(micros(age)?)),
            ["error", due] => (due, End::Failed),
            _ => return None,
        };
        self.ends.push((micros(due)?, end));
        Some(())
    }

    /// When the last answer came.
    pub(crate) fn last_answer(&self) -> Nanos {
        let answers = self.ends.iter().filter_map(|(due, end)| match *end {
            End::Answered(latency) => Some(*due + latency),
            End::Waits(_) | End::Failed => None,
        });
        answers.max().unwrap_or(Nanos::ZERO)
    }

    /// The figures of a run of this length.
    pub(crate) fn figures(&self, length: Nanos) -> Result<Figures, String> {
        let ends = || self.ends.iter().map(|(_, end)| *end);
        let failed = ends().filter(|end| matches!(end, End::Failed)).count();
        if failed > 0 {
            return Err(format!("{failed} of {} reads failed", self.ends.len()));
        }
        let latencies = ends().filter_map(|end| match end {
            End::Answered(latency) => Some(latency),
            End::Waits(age) => Some(age),
            End::Failed => None,
        });
        Ok(Figures {
            latency: Summary::of(&mut latencies.collect::<Vec<Nanos>>()),
            unfinished: ends().filter(|end| matches!(end, End::Waits(_))).count() as u64,
            wake: Summary::of(&mut self.wakes.clone()),
            pace: self.pace(length),
        })
    }

    /// Overloaded if more than [`UNFINISHED_SHARE`] of all reads are without an answer at the end and,
    /// in the second half of the run, less than [`ANSWERED_SHARE`] as many were answered as were due, and
    /// fewer by more than [`DEVIATIONS`].
    fn pace(&self, length: Nanos) -> Pace {
        let half = length.get() / 2;
        let answers = self.ends.iter().filter_map(|(due, end)| match *end {
            End::Answered(latency) => Some(due.get() + latency.get()),
            End::Waits(_) | End::Failed => None,
        });
        let answers: Vec<u64> = answers.collect();
        let unfinished = self.ends.len() - answers.len();
        let answered_late = answers.iter().filter(|at| **at >= half).count();
        let due_late = self.ends.iter().filter(|(due, _)| due.get() >= half).count();
        let (answered_late, due_late) = (answered_late as f64, due_late as f64);
        let falls_behind = answered_late < ANSWERED_SHARE * due_late
            && due_late - answered_late > DEVIATIONS * due_late.sqrt();
        if unfinished as f64 > UNFINISHED_SHARE * self.ends.len() as f64 && falls_behind {
            Pace::Overloaded
        } else {
            Pace::Keeps
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: Nanos = Nanos::from_millis(8000);

    /// 1000 reads, one every 8 ms, each answered `latency(idx)` ms after it was due, if that is before
    /// the end.
    fn served(latency: impl Fn(u64) -> u64) -> Sample {
        let mut sample = Sample::default();
        for idx in 0..1000 {
            let (due, latency) = (Nanos::from_millis(8 * idx), Nanos::from_millis(latency(idx)));
            let age = LENGTH - due;
            sample.wakes.push(Nanos::from_micros(100));
            let end = if latency <= age { End::Answered(latency) } else { End::Waits(age) };
            sample.ends.push((due, end));
        }
        sample
    }

    #[test]
    fn lines_are_read_as_the_client_writes_them() {
        let lines = ["begin 3", "read 0 5000 50", "error 8000", "waits 16000 9000", "end"];
        let sample = Sample::parse(lines).expect("they are complete");
        let ms = Nanos::from_millis;
        let ends =
            [(ms(0), End::Answered(ms(5))), (ms(8), End::Failed), (ms(16), End::Waits(ms(9)))];
        assert_eq!(sample.ends, ends);
        assert_eq!(sample.wakes, [Nanos::from_micros(50)]);
    }

    #[test]
    fn lines_that_are_not_the_clients_are_refused_with_what_is_wrong() {
        for (lines, fault) in [
            (&["trouble no device to read"][..], "begin COUNT"),
            (&["begin 2", "read 0 5000 50", "end"], "1 of 2"),
            (&["begin 1", "read 0 5000 50"], "its end"),
            (&["begin 1", "read 0 5000", "end"], "'read 0 5000'"),
        ] {
            let refused = Sample::parse(lines.iter().copied()).expect_err("it is not right");
            assert!(refused.contains(fault), "{refused}");
        }
    }

    #[test]
    fn a_read_without_an_answer_counts_with_its_age() {
        let lines = ["begin 3", "read 0 5000 50", "read 8 9000 70", "waits 16 16000", "end"];
        let sample = Sample::parse(lines).expect("they are complete");
        let figures = sample.figures(LENGTH).expect("none failed");
        assert_eq!(figures.latency.mean, Nanos::from_millis(10));
        assert_eq!(figures.latency.p50, Nanos::from_millis(9));
        assert_eq!(figures.latency.max, Nanos::from_millis(16));
        assert_eq!((figures.unfinished, figures.wake.max), (1, Nanos::from_micros(70)));
        assert_eq!(sample.last_answer(), Nanos::from_micros(9008));
    }

    #[test]
    fn percentiles_are_values_of_the_sample() {
        let figures = served(|idx| idx % 100 + 1).figures(LENGTH).expect("none failed");
        assert_eq!(figures.latency.p50, Nanos::from_millis(50));
        assert_eq!(figures.latency.p99, Nanos::from_millis(99));
        assert_eq!(figures.latency.max, Nanos::from_millis(100));
    }

    #[test]
    fn a_failed_read_is_an_error_and_no_figure() {
        let sample = Sample::parse(["begin 1", "error 0", "end"]).expect("they are complete");
        assert_eq!(sample.figures(LENGTH), Err("1 of 1 reads failed".to_owned()));
    }

    #[test]
    fn a_system_that_keeps_pace_is_not_overloaded_however_slow_it_is() {
        for latency in [0, 100, 300, 900] {
            assert_eq!(served(|_| latency).pace(LENGTH), Pace::Keeps, "{latency} ms");
        }
    }

    #[test]
    fn a_system_that_answers_five_of_six_falls_behind() {
        // Read idx is answered idx * 8 * 6 / 5 ms after the start.
        assert_eq!(served(|idx| idx * 8 / 5).pace(LENGTH), Pace::Overloaded);
        assert_eq!(served(|idx| idx * 8).pace(LENGTH), Pace::Overloaded);
        // Nothing at all is answered.
        assert_eq!(served(|_| u64::MAX / 1_000_000).pace(LENGTH), Pace::Overloaded);
    }

    #[test]
    fn a_burst_of_long_waits_at_the_end_is_no_overload_of_its_own() {
        // 40, or 60, reads of 1000 wait at the end; all others took 20 ms.
        for served_count in [960, 940] {
            let sample = served(|idx| if idx < served_count { 20 } else { 10_000 });
            assert_eq!(sample.pace(LENGTH), Pace::Keeps, "{served_count}");
        }
    }
}
