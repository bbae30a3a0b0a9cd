//! The limit: the same buffers read from first to last, and nothing done with them.

use crate::code::Operation;
use crate::kernel::Width;
use crate::measure::Coder;
use crate::pool::Codeword;

/// Reads what the operation reads.
pub(crate) struct Streaming {
    touch: Touch,
    width: Width,
}

enum Touch {
    Sources,
    /// An update reads the redundancy as well.
    SourcesAndWanted,
}

impl Streaming {
    pub(crate) fn new(operation: &Operation) -> Self {
        let touch = match operation {
            Operation::Encode | Operation::Reconstruct { .. } | Operation::Accumulate => {
                Touch::Sources
            }
            Operation::Update => Touch::SourcesAndWanted,
        };
        Self { touch, width: Width::here() }
    }
}

impl Coder for Streaming {
    fn run(&mut self, codeword: &mut Codeword<'_>) {
        let (sources, wanted) = codeword.split();
        self.width.read(sources);
        match self.touch {
            Touch::Sources => {}
            Touch::SourcesAndWanted => self.width.read(wanted),
        }
    }
}
