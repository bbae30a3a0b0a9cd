//! What the client does, and what is to be reached.

/// One kind of load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    pub(crate) name: &'static str,
    /// As fio calls it.
    pub(crate) pattern: &'static str,
    pub(crate) block_kib: u32,
    pub(crate) depth: u32,
    pub(crate) figure: Figure,
    /// The least of nbdkit's rate, or the most times nbdkit's latency.
    pub(crate) bar: f64,
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Figure {
    Rate,
    Latency,
}

const fn rate(
    name: &'static str,
    pattern: &'static str,
    block_kib: u32,
    depth: u32,
    bar: f64,
) -> Job {
    Job { name, pattern, block_kib, depth, figure: Figure::Rate, bar }
}

pub(crate) const ALL: [Job; 5] = [
    rate("read-1m", "read", 1024, 16, 0.9),
    rate("randread-64k", "randread", 64, 32, 0.75),
    rate("randread-4k", "randread", 4, 32, 0.75),
    Job { figure: Figure::Latency, ..rate("latency-4k", "randread", 4, 1, 2.0) },
    rate("write-1m", "write", 1024, 16, 0.85),
];

/// The jobs of these names; all, if there are none.
pub(crate) fn named(names: &[String]) -> Result<Vec<Job>, String> {
    if names.is_empty() {
        return Ok(ALL.to_vec());
    }
    let find = |name: &String| {
        let known = ALL.map(|job| job.name).join(", ");
        let job = ALL.into_iter().find(|job| job.name == *name);
        job.ok_or_else(|| format!("'{name}' is no job: expected {known}"))
    };
    names.iter().map(find).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_job_is_refused_with_the_names_there_are() {
        assert_eq!(named(&[]).unwrap().len(), ALL.len());
        assert_eq!(named(&["write-1m".to_owned()]).unwrap()[0].block_kib, 1024);
        let refused = named(&["much".to_owned()]).unwrap_err();
        assert!(refused.starts_with("'much' is no job: expected read-1m, "), "{refused}");
    }
}
