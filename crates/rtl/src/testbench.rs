//! The testbench: what is common to all kinds, around the engine of one.

/// What a testbench plays, and of how many bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Testbench<'a> {
    /// The engine's instance, and what gives it more than `in.hex` does.
    pub(crate) engine: &'a str,
    /// Lines of `in.hex`, at least 1.
    pub(crate) ins: usize,
    /// Bits of a line of `in.hex`.
    pub(crate) in_bits: usize,
    /// Which bit of a line says that it is the last one of its group or codeword.
    pub(crate) in_last: usize,
    /// Lines of `out.hex`, at least 1.
    pub(crate) outs: usize,
    /// Bits of a line of `out.hex`.
    pub(crate) out_bits: usize,
    /// What a line of `out.hex` is.
    pub(crate) out: &'a str,
    /// Lines that `engine` gives.
    pub(crate) others: usize,
    /// What the rests are drawn from, not 0.
    pub(crate) chance: u32,
}

impl Testbench<'_> {
    /// The module `testbench`.
    pub(crate) fn text(&self) -> String {
        include_str!("text/testbench.sv")
            .replace("@ENGINE@", self.engine.trim_end())
            .replace("@INS@", &self.ins.to_string())
            .replace("@IN_BITS@", &self.in_bits.to_string())
            .replace("@IN_LAST@", &self.in_last.to_string())
            .replace("@OUTS@", &self.outs.to_string())
            .replace("@OUT_BITS@", &self.out_bits.to_string())
            .replace("@OUT@", self.out)
            .replace("@OTHERS@", &self.others.to_string())
            .replace("@SEED@", &self.chance.to_string())
    }
}
