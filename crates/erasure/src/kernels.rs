//! Which kernels there are, and which of them this machine has.

use std::fmt;
use std::str::FromStr;

/// Which code does the arithmetic. All give the same bytes. One that the processor lacks the
/// instructions for runs as [`Portable`](Self::Portable).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// Bit by bit, byte by byte: slow, obvious, and the definition of the others.
    Naive,
    /// Plain loops that the compiler turns into vector instructions.
    Portable,
    /// Vectors of 32 bytes, products looked up nibble by nibble.
    Avx2,
    /// Vectors of 32 bytes, products as matrices of bits.
    Avx2Gfni,
    /// Vectors of 64 bytes, products as matrices of bits.
    Avx512Gfni,
}

/// A kernel's name that no kernel has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownKernel {
    name: String,
}

impl Kernel {
    /// Every kernel there is, the slowest first, whether this machine has it or not.
    pub const ALL: [Self; 5] =
        [Self::Naive, Self::Portable, Self::Avx2, Self::Avx2Gfni, Self::Avx512Gfni];

    /// The fastest kernel of this machine.
    pub fn best() -> Self {
        Self::available().last().unwrap_or(Self::Portable)
    }

    /// The kernels of this machine, the slowest first.
    pub fn available() -> impl DoubleEndedIterator<Item = Self> {
        Self::ALL.into_iter().filter(|kernel| kernel.is_available())
    }

    /// Whether this machine has the instructions.
    pub fn is_available(self) -> bool {
        match self {
            Self::Naive | Self::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => is_x86_feature_detected!("avx2"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2Gfni => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("gfni"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Gfni => {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("gfni")
            }
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx2 | Self::Avx2Gfni | Self::Avx512Gfni => false,
        }
    }

    /// The name that [`from_str`](str::parse) takes: `naive`, `portable`, `avx2`, `avx2-gfni`,
    /// `avx512-gfni`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Naive => "naive",
            Self::Portable => "portable",
            Self::Avx2 => "avx2",
            Self::Avx2Gfni => "avx2-gfni",
            Self::Avx512Gfni => "avx512-gfni",
        }
    }

    /// Whether it works on vectors, and minds how.
    pub(crate) const fn has_vectors(self) -> bool {
        matches!(self, Self::Avx2 | Self::Avx2Gfni | Self::Avx512Gfni)
    }

    /// Whether a product is two lookups in tables, several times the work of moving a vector.
    pub(crate) const fn multiplies_by_lookup(self) -> bool {
        matches!(self, Self::Avx2)
    }

    /// The kernel itself if the machine has it.
    pub(crate) fn or_portable(self) -> Self {
        if self.is_available() { self } else { Self::Portable }
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Kernel {
    type Err = UnknownKernel;

    fn from_str(name: &str) -> Result<Self, UnknownKernel> {
        Self::ALL
            .into_iter()
            .find(|kernel| kernel.name() == name)
            .ok_or_else(|| UnknownKernel { name: name.to_owned() })
    }
}

impl fmt::Display for UnknownKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        write!(
            f,
            "'{name}' is not a kernel: expected naive, portable, avx2, avx2-gfni or avx512-gfni"
        )
    }
}

impl std::error::Error for UnknownKernel {}
