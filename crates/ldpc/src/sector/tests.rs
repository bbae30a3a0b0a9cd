//! Sectors of all kinds, those among them that somebody made up to be mistaken, and what is wrong without the bijection and without
//! belief.

use levelhead_stats::{Rng, Streams};

use super::randomise::papers;
use super::*;
use crate::channel::{Channel, ChannelKind};
use crate::code::{shift_of, syndrome_is_zero};
use crate::shape::{Block, CODE_BITS, COLUMNS, ROWS};

const BEFORE: usize = SECTOR_BYTES - 512;
const LAST: usize = SECTOR_BYTES - 256;

/// What a host may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Data {
    Random,
    /// Random bytes before so many zeroes.
    Tail(usize),
    Zeroes,
    /// The pattern from here on, random bytes before.
    PatternFrom(usize),
    /// The pattern before the last 256 bytes, which are zeroes.
    PatternBeforeZeroes,
    /// The pattern before the last 256 bytes, which are random.
    PatternBeforeRandom,
    /// The pattern in the last 512 bytes, but for so many bits of each half.
    NearlyPattern(u64),
    /// The pattern in the first half of the last 256 bytes and zeroes in the other.
    HalfPattern,
    /// What is stored as a sector with zeroes at its end plus a light codeword.
    Light(Light),
}

/// A codeword of few ones: the columns that have them.
type Light = &'static [usize];

/// Some that have enough of their ones among the last 512 bytes, which are columns 56 to 63, for a decoder that forces these to mend the others.
const LIGHT: [Light; 3] =
    [&[12, 30, 33, 56, 60, 61], &[12, 25, 33, 56, 60, 61], &[11, 12, 33, 56, 60, 61]];

const ALL: [Data; 17] = [
    Data::Random,
    Data::Tail(1),
    Data::Tail(256),
    Data::Tail(300),
    Data::Tail(512),
    Data::Tail(1_024),
    Data::Zeroes,
    Data::PatternFrom(LAST),
    Data::PatternFrom(BEFORE),
    Data::PatternFrom(0),
    Data::PatternBeforeZeroes,
    Data::PatternBeforeRandom,
    Data::NearlyPattern(1),
    Data::NearlyPattern(30),
    Data::HalfPattern,
    Data::Light(LIGHT[0]),
    Data::Light(LIGHT[2]),
];

impl Data {
    fn draw(self, pattern: &Pattern, rng: &mut Rng) -> Vec<u8> {
        let mut sector = vec![0; SECTOR_BYTES];
        rng.fill(&mut sector);
        let bytes = pattern.bytes();
        match self {
            Self::Random => {}
            Self::Tail(zeroes) => sector[SECTOR_BYTES - zeroes..].fill(0),
            Self::Zeroes => sector.fill(0),
            Self::PatternFrom(at) => sector[at..].copy_from_slice(&bytes[at..]),
            Self::PatternBeforeZeroes => {
                sector[BEFORE..LAST].copy_from_slice(&bytes[BEFORE..LAST]);
                sector[LAST..].fill(0);
            }
            Self::PatternBeforeRandom => {
                sector[BEFORE..LAST].copy_from_slice(&bytes[BEFORE..LAST]);
            }
            Self::NearlyPattern(bits) => {
                sector[BEFORE..].copy_from_slice(&bytes[BEFORE..]);
                for _ in 0..bits {
                    for half in [BEFORE, LAST] {
                        let at = rng.below(2_048) as usize;
                        sector[half + at / 8] ^= 1 << (at % 8);
                    }
                }
            }
            Self::HalfPattern => {
                sector[LAST..].fill(0);
                sector[LAST..LAST + 128].copy_from_slice(&bytes[LAST..LAST + 128]);
            }
            Self::Light(columns) => {
                sector[BEFORE..].fill(0);
                let light = light_word(columns).sector();
                sector.iter_mut().zip(light).for_each(|(byte, light)| *byte ^= light);
                pattern.turn(&mut sector);
            }
        }
        sector
    }
}

/// The codeword with ones in these columns: in each the determinant of the others.
fn light_word(columns: Light) -> Codeword {
    let is_used = |row: &usize| columns.iter().any(|column| shift_of(*row, *column).is_some());
    let rows: Vec<usize> = (0..ROWS).filter(is_used).collect();
    assert_eq!(rows.len() + 1, columns.len(), "circulants of {columns:?}");
    let mut word = Codeword::ZERO;
    for column in columns {
        let others: Vec<usize> = columns.iter().copied().filter(|other| other != column).collect();
        add_determinant(&rows, &others, 0, &mut word.0[*column]);
    }
    assert!(word != Codeword::ZERO);
    assert!(syndrome_is_zero(&word));
    word
}

/// Adds the determinant of these rows and columns times `x^-shift`: a circulant of shift `s` is `x^-s`.
fn add_determinant(rows: &[usize], columns: &[usize], shift: usize, sum: &mut Block) {
    let Some((column, columns)) = columns.split_first() else {
        let at = shift.next_multiple_of(512) - shift;
        sum[at / 64] ^= 1 << (at % 64);
        return;
    };
    for row in rows {
        let others: Vec<usize> = rows.iter().copied().filter(|other| other != row).collect();
        if let Some(more) = shift_of(*row, *column) {
            add_determinant(&others, columns, shift + more, sum);
        }
    }
}

/// SE1, SE2.
#[test]
fn whatever_a_host_writes_is_turned_back_and_keeps_its_kind() {
    let pattern = Pattern::new();
    let mut rng = Streams::new(31).stream("sector");
    for data in ALL.into_iter().cycle().take(ALL.len() * 50) {
        let sector = data.draw(&pattern, &mut rng);
        let mut stored = sector.clone();
        pattern.turn(&mut stored);
        assert_eq!(kind_of(&stored), kind_of(&sector), "{data:?}");
        pattern.turn(&mut stored);
        assert_eq!(stored, sector, "{data:?}");
    }
}

/// Canary: data that equals the pattern comes back as zeroes by the paper's scheme, without noise and without a word.
#[test]
fn papers_scheme_reads_the_pattern_back_as_zeroes() {
    let mut code = SectorCode::new(Kernel::best());
    let pattern = Pattern::new();
    let mut rng = Streams::new(37).stream("sector");
    let channel = Channel::new(ChannelKind::Soft, 0.01).unwrap();
    let mut levels = vec![0; CODE_BITS];
    for (data, wrong) in [
        (Data::PatternFrom(LAST), LAST),
        (Data::PatternFrom(BEFORE), BEFORE),
        (Data::PatternBeforeZeroes, BEFORE),
    ] {
        let sector = data.draw(&pattern, &mut rng);
        let mut stored = sector.clone();
        papers::turn(pattern.bytes(), &mut stored);
        channel.transmit(&encode(&stored), &mut rng, &mut levels);
        let guess = Shares::of(&levels).guess();
        let mut decoder = Decoder::new(guess, Kernel::best());
        assert!(decoder.decode(&levels, 50).converged, "{data:?}");
        let mut back = decoder.word().sector();
        papers::turn(pattern.bytes(), &mut back);
        assert_eq!(back[..wrong], sector[..wrong], "{data:?}");
        assert!(back[wrong..].iter().all(|byte| *byte == 0), "{data:?}");
        assert_ne!(back, sector, "{data:?}");

        channel.transmit(&code.write(&sector), &mut rng, &mut levels);
        let read = code.read(&levels, 50);
        assert!(matches!(read, ReadBack::Sector { bytes, .. } if bytes == sector), "{data:?}");
    }
}

/// Canary, SE3: a decoder that forces zeroes on a wrong guess takes away a light codeword together with the noise.
#[test]
fn light_codewords_among_forced_bits_are_not_taken_for_noise() {
    let mut code = SectorCode::new(Kernel::best());
    let mut rng = Streams::new(41).stream("sector");
    let mut levels = vec![0; CODE_BITS];
    let points = LIGHT.map(|light| (light, 0.001)).into_iter().chain([(LIGHT[1], 0.005)]);
    for (light, ber) in points {
        let channel = Channel::new(ChannelKind::Soft, ber).unwrap();
        let sector = Data::Light(light).draw(&code.pattern, &mut rng);
        let sent = code.write(&sector);
        channel.transmit(&sent, &mut rng, &mut levels);
        let guess = Shares::of(&levels).guess();
        assert_eq!(guess, ZeroForcing::B512, "{light:?} {ber}");
        let mut decoder = Decoder::new(guess, Kernel::best());
        assert!(decoder.decode(&levels, 50).converged, "{light:?} {ber}");
        let distance = decoder.word().distance(&sent);
        assert_eq!(distance, light_word(light).distance(&Codeword::ZERO), "{light:?} {ber}");

        let ReadBack::Sector { bytes, forced, effort } = code.read(&levels, 50) else {
            panic!("{light:?} {ber}: no kind led to a codeword");
        };
        assert_eq!(bytes, sector, "{light:?} {ber}");
        assert_eq!((forced, effort.refused), (ZeroForcing::None, 1), "{light:?} {ber}");
    }
}

/// No wrong byte, whatever was written and guessed. `LDPC_SECTORS=100000` for a long run.
#[test]
fn no_sector_comes_back_with_a_wrong_byte() {
    let sectors: usize = std::env::var("LDPC_SECTORS")
        .map_or(1_000, |text| text.parse().expect("a number of sectors"));
    let mut code = SectorCode::new(Kernel::best());
    let mut rng = Streams::new(43).stream("sector");
    let channels = [
        (ChannelKind::Soft, 0.001),
        (ChannelKind::Soft, 0.01),
        (ChannelKind::Soft, 0.0165),
        (ChannelKind::Soft, 0.0185),
        (ChannelKind::Hard, 0.005),
    ]
    .map(|(kind, ber)| Channel::new(kind, ber).unwrap());
    let mut levels = vec![0; CODE_BITS];
    let (mut failed, mut mended, mut refused, mut forced_more) = (0, 0, 0, 0);
    for at in 0..sectors {
        let data = ALL[at % ALL.len()];
        let channel = &channels[at / ALL.len() % channels.len()];
        let sector = data.draw(&code.pattern, &mut rng);
        channel.transmit(&code.write(&sector), &mut rng, &mut levels);
        // Half of the guesses are the drive's own, half are planted.
        let guess = match rng.below(6) {
            planted @ 0..3 => KINDS[planted as usize],
            _ => Shares::of(&levels).guess(),
        };
        let read = code.read_as(guess, &levels, 50);
        let effort = read.effort();
        assert!((1..=3).contains(&effort.tries), "sector {at}, {data:?}: {effort:?}");
        refused += effort.refused;
        match read {
            ReadBack::Failed { .. } => failed += 1,
            ReadBack::Sector { bytes, forced, .. } => {
                assert!(bytes == sector, "sector {at}, {data:?}, guess {guess}: wrong bytes");
                forced_more += u32::from(forced > kind_of(&sector));
                mended += u32::from(effort.tries > 1);
            }
        }
    }
    println!("{sectors} sectors: {failed} failed, {mended} by another kind, {refused} refused");
    assert_eq!(forced_more, 0, "zeroes were forced where there are none");
    assert!(failed > 0 && mended > 0 && refused > 0, "{failed} {mended} {refused}");
}

#[test]
#[should_panic(expected = "1024 zeroes are no kind of sector")]
fn a_kilobyte_of_zeroes_is_no_guess() {
    let levels = vec![8; CODE_BITS];
    SectorCode::new(Kernel::Portable).read_as(ZeroForcing::B1024, &levels, 1);
}

const _: () = assert!(COLUMNS * 512 == CODE_BITS);
