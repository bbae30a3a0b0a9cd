//! Ours.

use std::time::Duration;

use levelhead_erasure::{
    Choices, Class, Code, DecodePlan, Kernel, Measured, Measurement, Place, measure,
};

use crate::code::{BATCH_COUNT, Cache, Operation, Shape};
use crate::measure::{Coder, cpu_time, median};
use crate::pool::Codeword;

/// New erasure patterns timed for [`setup_us`].
const PATTERN_COUNT: usize = 101;

/// One operation, by one kernel.
pub(crate) struct Ours {
    code: Code,
    choices: Choices,
    work: Work,
}

enum Work {
    Encode,
    Reconstruct(Box<DecodePlan>),
    Update { column: usize },
    Accumulate,
}

/// The code, if there is one of this length.
pub(crate) fn code(shape: Shape) -> Option<Code> {
    Code::new(shape.data, shape.redundant).ok()
}

/// The kernels that have figures, the one chosen here first. The naive one defines the others and
/// is compared with no peer.
pub(crate) fn kernels() -> Vec<Kernel> {
    let best = Kernel::best();
    let others = Kernel::available().filter(|&kernel| kernel != best && kernel != Kernel::Naive);
    std::iter::once(best).chain(others.rev()).collect()
}

/// The choices of a program that uses the library, measured as it would: with the kernels that have the
/// most instructions, or with one of them.
pub(crate) fn measured(kernels: &[Kernel], cache: Cache) -> Measured {
    let place = match cache {
        Cache::Dram => Place::Memory,
        Cache::Hot => Place::Cache,
    };
    measure(Measurement {
        kernels,
        place,
        classes: &Class::ALL,
        time_max: MEASURING_MAX,
        clock: &mut cpu_time,
    })
}

/// The same as in the programs.
const MEASURING_MAX: Duration = Duration::from_millis(16);

/// CPU microseconds it takes to plan for a pattern never seen before: the median of many.
pub(crate) fn setup_us(code: &Code, count: usize) -> f64 {
    let times = (0..PATTERN_COUNT).map(|pattern| {
        let mut lost: Vec<usize> =
            (0..count).map(|at| (pattern * 7 + at * code.data() / count) % code.data()).collect();
        lost.sort_unstable();
        let start = cpu_time();
        let plan = code.plan(&lost, &lost);
        let took = cpu_time() - start;
        assert!(plan.is_ok(), "no more are lost than there are redundant");
        took.as_secs_f64() * 1e6
    });
    median(times.collect())
}

impl Ours {
    pub(crate) fn new(choices: Choices, shape: Shape, operation: &Operation) -> Option<Self> {
        let code = code(shape)?;
        let work = match operation {
            Operation::Encode => Work::Encode,
            Operation::Reconstruct { lost } => {
                let plan = code.plan(lost, lost).expect("no more are lost than are redundant");
                let sources = operation.layout(shape).sources;
                assert_eq!(plan.sources(), sources, "the plan reads what it is given");
                Work::Reconstruct(plan.into())
            }
            Operation::Update => Work::Update { column: shape.updated() },
            Operation::Accumulate => Work::Accumulate,
        };
        Some(Self { code, choices, work })
    }
}

impl Coder for Ours {
    fn run(&mut self, codeword: &mut Codeword<'_>) {
        let (sources, wanted) = codeword.split();
        let Self { code, choices, work } = self;
        match work {
            Work::Encode => code.encode(*choices, sources, wanted),
            Work::Reconstruct(plan) => plan.run(*choices, sources, wanted),
            Work::Update { column } => code.update(*choices, *column, sources[0], wanted),
            Work::Accumulate => {
                sources.chunks(BATCH_COUNT).enumerate().try_for_each(|(batch, data)| {
                    code.accumulate(*choices, batch * BATCH_COUNT, data, wanted)
                })
            }
        }
        .expect("the buffers fit the code");
    }
}
