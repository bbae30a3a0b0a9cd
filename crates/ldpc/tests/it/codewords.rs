//! A decoder treats zeroes and ones differently only where a level is zero.

use levelhead_ldpc::{Codeword, Decoder, Kernel, ZeroForcing};
use levelhead_stats::Streams;

use crate::frames::{bits, codeword, noise, sent};

/// Frames, and those of them that fail, as codewords of zeroes and as others.
#[derive(Debug)]
struct Counts {
    frames: u64,
    zeroes: u64,
    random: u64,
    /// Frames that one fails and the other does not.
    apart: u64,
}

/// The same noise over a codeword of zeroes and over one of 16 random ones.
fn count(frames: u64, damage: impl Fn(&mut Vec<i8>)) -> Counts {
    let mut rng = Streams::new(11).stream("codewords");
    let forced = ZeroForcing::None;
    let words: Vec<Codeword> = (0..16).map(|_| codeword(&mut rng, forced)).collect();
    let mut decoder = Decoder::new(forced, Kernel::best());
    let mut fails = |word: &Codeword, levels: &[i8]| {
        let decoded = decoder.decode(levels, 50);
        !(decoded.converged && decoder.word() == word)
    };
    let mut counts = Counts { frames, zeroes: 0, random: 0, apart: 0 };
    for frame in 0..frames {
        let noise = noise(0.0181, frame);
        let word = &words[frame as usize % 16];
        let zero = fails(&Codeword::ZERO, &noise);
        let mut levels = sent(&bits(word), &noise);
        damage(&mut levels);
        let random = fails(word, &levels);
        counts.zeroes += u64::from(zero);
        counts.random += u64::from(random);
        counts.apart += u64::from(zero != random);
    }
    counts
}

#[test]
fn random_codewords_fail_like_zeroes() {
    let counts = count(1_536, |_| {});
    assert!(counts.zeroes > 20, "{counts:?}");
    assert!(counts.zeroes < counts.frames / 2, "{counts:?}");
    assert_eq!(counts.zeroes, counts.random, "{counts:?}");
    assert!(counts.apart * 10 <= counts.zeroes, "{counts:?}");
}

/// The canary: a decoder that took every twentieth one for a little less sure than a zero would be noticed.
#[test]
fn a_decoder_that_prefers_zeroes_is_noticed() {
    let counts = count(256, |levels| {
        levels.iter_mut().step_by(20).filter(|level| **level < 0).for_each(|level| *level += 4);
    });
    assert!(counts.random > counts.zeroes, "{counts:?}");
}
