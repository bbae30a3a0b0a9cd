//! What is measured: codes, operations, and where the data is.

use std::fmt;
use std::str::FromStr;

use crate::pool::Layout;

/// The codes of the table.
pub(crate) const SHAPES: [Shape; 12] = [
    Shape::long(3, 252),
    Shape::long(4, 251),
    Shape::long(5, 250),
    Shape::long(9, 246),
    Shape::long(4, 1019),
    Shape::long(7, 1016),
    Shape::long(9, 1014),
    Shape::long(19, 1004),
    Shape::array(5, 1),
    Shape::array(4, 2),
    Shape::array(10, 2),
    Shape::array(15, 3),
];

/// Data sectors that arrive together in [`Operation::Accumulate`].
pub(crate) const BATCH_COUNT: usize = 4;

/// A code, by its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Data symbols.
    pub(crate) data: usize,
    /// Redundant symbols.
    pub(crate) redundant: usize,
    kind: Kind,
}

/// What the code is for: that decides how its numbers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A codeword along one drive: "redundant,data".
    Long,
    /// A stripe across an array: "data+redundant".
    Array,
}

/// What is done to a codeword.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// All redundant symbols from all data.
    Encode,
    /// These data symbols from the others and as many of the first redundant ones, the plan ready.
    Reconstruct {
        /// The data symbols that are gone, ascending.
        lost: Vec<usize>,
    },
    /// All redundant symbols after one data symbol changed, from its difference.
    Update,
    /// As encode, but over open redundancy, a batch of data at a time.
    Accumulate,
}

/// Where the buffers are when an operation starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cache {
    /// In memory: it is another codeword's turn each time.
    Dram,
    /// In whatever cache holds them: the same codeword again.
    Hot,
}

impl Shape {
    const fn long(redundant: usize, data: usize) -> Self {
        Self { data, redundant, kind: Kind::Long }
    }

    const fn array(data: usize, redundant: usize) -> Self {
        Self { data, redundant, kind: Kind::Array }
    }

    /// Symbols in a codeword.
    pub(crate) fn len(self) -> usize {
        self.data + self.redundant
    }

    /// The operations measured: reconstruction of one, two and the most symbols.
    pub(crate) fn operations(self) -> Vec<Operation> {
        let mut counts = vec![1, 2, self.redundant];
        counts.retain(|&count| count <= self.redundant);
        counts.dedup();
        let mut operations = vec![Operation::Encode];
        operations.extend(counts.into_iter().map(|count| {
            // In the middle of equal parts of the codeword.
            let lost = (0..count).map(|at| (2 * at + 1) * self.data / (2 * count)).collect();
            Operation::Reconstruct { lost }
        }));
        operations.extend([Operation::Update, Operation::Accumulate]);
        operations
    }

    /// The data symbol whose difference is updated.
    pub(crate) fn updated(self) -> usize {
        self.data / 2
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { data, redundant, kind } = self;
        match kind {
            Kind::Long => write!(f, "{redundant},{data}"),
            Kind::Array => write!(f, "{data}+{redundant}"),
        }
    }
}

impl FromStr for Shape {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        SHAPES.into_iter().find(|shape| shape.to_string() == text).ok_or_else(|| {
            let names = SHAPES.map(|shape| shape.to_string()).join(" ");
            format!("there is no such code in the table, which has {names}")
        })
    }
}

impl Operation {
    /// Which buffers a codeword of `shape` has for it, and what becomes of them. An update is given
    /// a difference and the redundancy, next to each other: that is all it touches.
    pub(crate) fn layout(&self, shape: Shape) -> Layout {
        let Shape { data, redundant, .. } = shape;
        match self {
            Self::Encode | Self::Accumulate => Layout {
                len: shape.len(),
                sources: (0..data).collect(),
                wanted: (data..shape.len()).collect(),
            },
            Self::Reconstruct { lost } => {
                Layout { len: shape.len(), sources: survivors(shape, lost), wanted: lost.clone() }
            }
            Self::Update => {
                Layout { len: 1 + redundant, sources: vec![0], wanted: (1..=redundant).collect() }
            }
        }
    }

    /// Data symbols of a codeword that one operation deals with.
    pub(crate) fn data_count(&self, shape: Shape) -> usize {
        match self {
            Self::Encode | Self::Reconstruct { .. } | Self::Accumulate => shape.data,
            Self::Update => 1,
        }
    }
}

/// The first of these names that no operation of these codes has.
pub(crate) fn unknown_operation<'a>(names: &'a [String], shapes: &[Shape]) -> Option<&'a String> {
    let known: Vec<String> = shapes
        .iter()
        .flat_map(|shape| shape.operations())
        .map(|operation| operation.to_string())
        .collect();
    names.iter().find(|name| !known.contains(name))
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Encode => write!(f, "encode"),
            Self::Reconstruct { lost } => write!(f, "reconstruct:{}", lost.len()),
            Self::Update => write!(f, "update"),
            Self::Accumulate => write!(f, "accumulate"),
        }
    }
}

impl Cache {
    /// Both.
    pub(crate) const ALL: [Self; 2] = [Self::Dram, Self::Hot];
}

impl fmt::Display for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Dram => "dram",
            Self::Hot => "hot",
        })
    }
}

/// The symbols that a reconstruction of `lost` data reads: the data that is left, and the first
/// redundant symbols for the rest.
fn survivors(shape: Shape, lost: &[usize]) -> Vec<usize> {
    (0..shape.data + lost.len()).filter(|symbol| !lost.contains(symbol)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_is_known_if_one_of_the_codes_has_it() {
        let names = |names: &[&str]| -> Vec<String> {
            names.iter().map(|name| (*name).to_owned()).collect()
        };
        let one: [Shape; 1] = ["5+1".parse().unwrap()];
        let two: [Shape; 2] = ["5+1".parse().unwrap(), "9,246".parse().unwrap()];
        let asked = names(&["encode", "reconstruct:9"]);
        assert_eq!(unknown_operation(&asked, &one), Some(&asked[1]));
        assert_eq!(unknown_operation(&asked, &two), None);
        assert!(unknown_operation(&names(&["nonsense"]), &SHAPES).is_some());
    }

    #[test]
    fn every_code_is_called_what_the_literature_calls_it_and_found_by_that() {
        let names = SHAPES.map(|shape| shape.to_string());
        assert_eq!(names[3], "9,246");
        assert_eq!(names[8], "5+1");
        for (shape, name) in SHAPES.into_iter().zip(names) {
            assert_eq!(name.parse(), Ok(shape));
        }
        assert!("246,9".parse::<Shape>().unwrap_err().contains("9,246"));
    }

    #[test]
    fn one_two_and_the_most_symbols_are_reconstructed_each_count_once() {
        let names = |shape: Shape| -> Vec<String> {
            shape.operations().iter().map(Operation::to_string).collect()
        };
        let expected = ["encode", "reconstruct:1", "update", "accumulate"];
        assert_eq!(names(Shape::array(5, 1)), expected);
        let expected = ["encode", "reconstruct:1", "reconstruct:2", "update", "accumulate"];
        assert_eq!(names(Shape::array(4, 2)), expected);
        assert_eq!(names(Shape::long(9, 246))[3], "reconstruct:9");
    }

    #[test]
    fn a_layout_names_no_symbol_twice_and_reads_as_many_as_there_are_data() {
        for shape in SHAPES {
            for operation in shape.operations() {
                let Layout { len, sources, wanted } = operation.layout(shape);
                assert_eq!(sources.len(), operation.data_count(shape), "{shape} {operation}");
                let mut symbols = [sources, wanted].concat();
                symbols.sort_unstable();
                let count = symbols.len();
                symbols.dedup();
                assert_eq!(symbols.len(), count, "{shape} {operation}");
                assert!(symbols.iter().all(|&symbol| symbol < len), "{shape} {operation}");
            }
        }
    }
}
