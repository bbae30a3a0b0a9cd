//! ldpc-toolbox's decoders, given the same code.

use ldpc_toolbox::decoder::LdpcDecoder;
use ldpc_toolbox::decoder::factory::{DecoderFactory, DecoderImplementation};
use ldpc_toolbox::sparse::SparseMatrix;
use levelhead_ldpc::{
    BLOCK_BITS, CODE_BITS, COLUMNS, Channel, ChannelKind, ROWS, SECTOR_BYTES, column_of, encode,
};
use levelhead_stats::{Normal, Rng, Streams};

use super::{ITERATIONS, SEED, Turn};
use crate::measure::cpu_time;

/// Of the crate.
pub(super) const VERSION: &str = "0.12.0";

/// Frames of a turn.
const FRAMES: usize = 4;

/// Steps of a level in the amplitude.
const STEPS: f64 = 16.0;

/// A decoder, by the crate's name for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer {
    pub(super) name: &'static str,
    implementation: DecoderImplementation,
}

/// The one that ours is compared with first: layered, bytes, the crate's fastest on this code. The other one is layered belief
/// propagation.
pub(super) const PEERS: [Peer; 2] = [
    Peer { name: "HLAminstari8", implementation: DecoderImplementation::HLAminstari8 },
    Peer { name: "HLPhif32", implementation: DecoderImplementation::HLPhif32 },
];

/// A decoder and its frames.
pub(super) struct Toolbox {
    decoder: Box<dyn LdpcDecoder>,
    channel: Channel,
    /// The log-likelihood ratio of level 1.
    unit: f64,
    rng: Rng,
}

impl Toolbox {
    pub(super) fn new(peer: Peer, ber: f64) -> Self {
        let mut matrix = SparseMatrix::new(ROWS * BLOCK_BITS, CODE_BITS);
        for column in 0..COLUMNS {
            for entry in column_of(column) {
                for check in 0..BLOCK_BITS {
                    let bit = column * BLOCK_BITS + (check + entry.shift) % BLOCK_BITS;
                    matrix.insert(entry.row * BLOCK_BITS + check, bit);
                }
            }
        }
        let sigma = -1.0 / Normal::STANDARD.quantile(ber);
        Self {
            decoder: peer.implementation.build_decoder(matrix),
            channel: Channel::new(ChannelKind::Soft, ber).expect("a channel has this rate"),
            unit: 2.0 / (STEPS * sigma * sigma),
            rng: Streams::new(SEED).stream(peer.name),
        }
    }

    /// Draws frames, and then decodes them.
    pub(super) fn turn(&mut self) -> Turn {
        let frames: [(Vec<u8>, Vec<f64>); FRAMES] = std::array::from_fn(|_| self.frame());
        let mut failures = 0;
        let start = cpu_time();
        for (sent, ratios) in &frames {
            let decoded = self.decoder.decode(ratios, ITERATIONS as usize);
            failures += u64::from(!decoded.is_ok_and(|decoded| decoded.codeword == *sent));
        }
        Turn { frames: FRAMES as u64, failures, took: cpu_time() - start }
    }

    /// The bits of a random codeword, and their log-likelihood ratios.
    fn frame(&mut self) -> (Vec<u8>, Vec<f64>) {
        let mut sector = vec![0; SECTOR_BYTES];
        self.rng.fill(&mut sector);
        let word = encode(&sector);
        let bits = word.0.iter().flatten().flat_map(|word| (0..64).map(move |at| word >> at & 1));
        let bits: Vec<u8> = bits.map(|bit| bit as u8).collect();
        let mut levels = vec![0; CODE_BITS];
        self.channel.draw(&mut self.rng, &mut levels);
        let ratio = |(bit, level): (&u8, &i8)| {
            let of_zero = f64::from(*level) * self.unit;
            if *bit == 1 { -of_zero } else { of_zero }
        };
        let ratios = bits.iter().zip(&levels).map(ratio).collect();
        (bits, ratios)
    }
}
