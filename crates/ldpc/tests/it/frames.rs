//! Codewords and their noise.

use levelhead_ldpc::{
    CODE_BITS, Channel, ChannelKind, Codeword, SECTOR_BYTES, ZeroForcing, encode,
};
use levelhead_stats::{Rng, Streams};

/// The codeword of a random sector with these zeroes.
pub(crate) fn codeword(rng: &mut Rng, forced: ZeroForcing) -> Codeword {
    let mut sector = vec![0; SECTOR_BYTES];
    rng.fill(&mut sector[..SECTOR_BYTES - forced.bytes()]);
    encode(&sector)
}

/// The bits, one by one.
pub(crate) fn bits(word: &Codeword) -> Vec<bool> {
    let bits_of = |word: &u64| {
        let word = *word;
        (0..64).map(move |at| word >> at & 1 == 1)
    };
    word.0.iter().flatten().flat_map(bits_of).collect()
}

/// The levels that noise makes of zeroes.
pub(crate) fn noise(ber: f64, seed: u64) -> Vec<i8> {
    let mut levels = vec![0; CODE_BITS];
    let channel = Channel::new(ChannelKind::Soft, ber).unwrap();
    channel.draw(&mut Streams::new(seed).stream("noise"), &mut levels);
    levels
}

/// The levels of a codeword under this noise.
pub(crate) fn sent(bits: &[bool], noise: &[i8]) -> Vec<i8> {
    let level = |(bit, level): (&bool, &i8)| if *bit { -level } else { *level };
    bits.iter().zip(noise).map(level).collect()
}
