//! The codes of coding extents.

use std::collections::BTreeMap;

use levelhead_erasure::{Choices, Code};

use super::job::PAGE;
use crate::format::extent::CodingExtent;

/// Codes that were made.
#[derive(Debug, Default)]
pub(super) struct Codes(BTreeMap<(u32, u8), Code>);

impl Codes {
    /// The code with this many data and redundant symbols.
    pub(super) fn get(&mut self, data: u32, redundant: u8) -> &Code {
        self.0.entry((data, redundant)).or_insert_with(|| {
            Code::new(data as usize, redundant.into()).expect("the ladder's codes exist")
        })
    }

    /// Computes what is redundant in a coding extent. `data` is all its data sectors, `into` all its redundant ones.
    pub(super) fn encode(
        &mut self,
        choices: Choices,
        extent: &CodingExtent,
        data: &[&[u8]],
        into: &mut [u8],
    ) {
        if extent.redundant == 0 {
            return;
        }
        let depth = usize::from(extent.depth);
        let mut rows: Vec<Option<&mut [u8]>> = into.chunks_mut(PAGE as usize).map(Some).collect();
        for word in 0..extent.words() {
            let of_word: Vec<&[u8]> =
                data.iter().skip(word as usize).step_by(depth).copied().collect();
            let mut redundant: Vec<&mut [u8]> = (0..usize::from(extent.redundant))
                .map(|row| {
                    rows[row * depth + word as usize].take().expect("each row is of one word")
                })
                .collect();
            let code = self.get(of_word.len() as u32, extent.redundant);
            code.encode(choices, &of_word, &mut redundant).expect("one buffer for each symbol");
        }
    }
}
