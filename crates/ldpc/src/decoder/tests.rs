use levelhead_stats::Streams;

use super::*;
use crate::channel::{Channel, ChannelKind, send};
use crate::encode::encode;
use crate::shape::SECTOR_BYTES;

/// A codeword with the zeroes of `forced`, and its noisy levels.
fn frame(forced: ZeroForcing, ber: f64, seed: u64) -> (Codeword, Vec<i8>) {
    let mut rng = Streams::new(seed).stream("decoder");
    let mut sector = vec![0; SECTOR_BYTES];
    rng.fill(&mut sector[..SECTOR_BYTES - forced.bytes()]);
    let word = encode(&sector);
    let mut levels = vec![0; CODE_BITS];
    Channel::new(ChannelKind::Soft, ber).unwrap().draw(&mut rng, &mut levels);
    send(&word, &mut levels);
    (word, levels)
}

/// Where two decoders' levels or decisions first differ, or have a -128.
fn difference(decoder: &Decoder, naive: &Decoder, forced: ZeroForcing) -> Option<String> {
    if decoder.word() != naive.word() {
        return Some("decisions".to_owned());
    }
    (0..COLUMNS).filter(|column| forced.takes(*column)).find_map(|column| {
        let (seen, defined) = (decoder.levels(column), naive.levels(column));
        let is_good = seen == defined && !seen.contains(&i8::MIN);
        (!is_good).then(|| format!("column {column}"))
    })
}

/// The canaries of the test below: a message of the wrong sign, and a column too many skipped.
#[test]
fn a_message_of_the_wrong_sign_and_a_column_too_many_skipped_are_noticed() {
    let forced = ZeroForcing::B256;
    let (_, levels) = frame(forced, 0.02, 5);
    for kernel in Kernel::available().skip(1) {
        let after = |iterations: u32, damage: fn(&mut Decoder)| {
            let [mut decoder, mut naive] = [kernel, Kernel::Naive].map(|k| Decoder::new(forced, k));
            decoder.decode(&levels, 1);
            naive.decode(&levels, 1);
            damage(&mut decoder);
            for decoder in [&mut decoder, &mut naive] {
                (0..iterations).for_each(|_| decoder.engine.iterate(&decoder.links));
            }
            difference(&decoder, &naive, forced)
        };
        let turn = |decoder: &mut Decoder| decoder.engine.turn_message();
        let skip = |decoder: &mut Decoder| {
            decoder.links.iter_mut().for_each(|row| row.retain(|link| link.column != 40));
        };
        assert_eq!(after(1, |_| {}), None, "{kernel}");
        assert!(after(1, turn).is_some(), "{kernel}");
        assert!(after(1, skip).is_some(), "{kernel}");
    }
}

/// DE1, DE2: every level after every iteration, of frames that fail, too.
#[test]
fn kernels_give_the_levels_of_the_naive_one() {
    // `cargo xtask soak kernels` takes a thousand.
    let frames: u64 =
        std::env::var("LDPC_FRAMES").map_or(40, |text| text.parse().expect("a number of frames"));
    let mut failed = 0;
    for seed in 0..frames {
        let forced = ZeroForcing::ALL[seed as usize % 4];
        let ber = [0.017, 0.019, 0.021, 0.026][seed as usize / 4 % 4];
        let (_, levels) = frame(forced, ber, seed);
        let mut naive = Decoder::new(forced, Kernel::Naive);
        let expected = naive.decode(&levels, 20);
        failed += u32::from(!expected.converged);
        for kernel in Kernel::available().skip(1) {
            let mut decoder = Decoder::new(forced, kernel);
            // Not the first frame: what the last one left must not matter.
            decoder.decode(&frame(forced, 0.02, seed + 1_000).1, 3);
            assert_eq!(decoder.decode(&levels, 20), expected, "{kernel}, seed {seed}");
            assert_eq!(difference(&decoder, &naive, forced), None, "{kernel}, seed {seed}");
        }
    }
    // For who runs it at length, or on a machine with other instructions.
    let kernels: Vec<&str> = Kernel::available().map(Kernel::name).collect();
    println!("{}: {frames} frames, of which {failed} fail", kernels.join(", "));
    assert!(failed > 0, "no frame failed");
    assert!(u64::from(failed) < frames, "every frame failed");
}

#[test]
fn noise_that_the_code_can_bear_is_taken_away() {
    for (forced, ber) in [
        (ZeroForcing::None, 0.015),
        (ZeroForcing::B256, 0.016),
        (ZeroForcing::B512, 0.017),
        (ZeroForcing::B1024, 0.020),
    ] {
        let mut decoder = Decoder::new(forced, Kernel::best());
        for seed in 0..20 {
            let (word, levels) = frame(forced, ber, seed);
            let decoded = decoder.decode(&levels, 50);
            assert!(decoded.converged && decoded.iterations > 2, "{forced} {seed}: {decoded:?}");
            assert_eq!(*decoder.word(), word, "{forced} {seed}");
        }
    }
}

#[test]
fn what_has_no_error_takes_no_iteration() {
    let (word, _) = frame(ZeroForcing::None, 0.015, 1);
    let mut levels = vec![8; CODE_BITS];
    send(&word, &mut levels);
    let mut decoder = Decoder::new(ZeroForcing::None, Kernel::best());
    assert_eq!(decoder.decode(&levels, 50), Decoded { converged: true, iterations: 0 });
    assert_eq!(*decoder.word(), word);
}
