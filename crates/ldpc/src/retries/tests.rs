use levelhead_stats::{Normal, Rng, Streams};

use super::*;
use crate::code::ZeroForcing;
use crate::fit::FITS;

fn model(written_offset: f64, pass_offset: f64) -> RetryModel {
    RetryModel { failure_rate: 5e-3, written_offset, pass_offset, steps: Step::list() }
}

#[test]
fn equal_sectors_fail_as_the_curves_say() {
    let model = model(0.0, 0.0);
    let (table, sigma) = (model.table("equal").unwrap(), model.sigma().unwrap());
    assert_eq!(table.class_count(), 1);
    for fit in FITS {
        let (seen, curve) = (table.all_fail(fit.forced, 0), fit.failure(sigma));
        assert!((seen / curve - 1.0).abs() < 1e-9, "{}: {seen} {curve}", fit.forced);
    }
    assert!((table.all_fail(ZeroForcing::None, 0) / 5e-3 - 1.0).abs() < 1e-9);
}

#[test]
fn first_passes_fail_at_the_rate_asked_for_or_none_is_given() {
    let mut refused = 0;
    for failure_rate in [1e-12, 1e-6, 5e-3, 0.4] {
        for offset in [0.0, 0.01, 0.04, 0.08, 0.2] {
            let model = RetryModel { failure_rate, ..model(offset, offset) };
            match model.table("t") {
                Ok(table) => {
                    let seen = table.all_fail(ZeroForcing::None, 0) / failure_rate;
                    assert!((seen - 1.0).abs() < 1e-6, "{failure_rate} {offset}: {seen}");
                }
                Err(RetryError::Unreachable { least, .. }) => {
                    assert!(least >= failure_rate && offset > 0.04, "{failure_rate} {offset}");
                    refused += 1;
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
    assert!((3..8).contains(&refused), "{refused}");
}

/// 200,000 sectors and passes drawn one by one, which knows of no class and no sum. Four standard errors.
#[test]
fn wandering_heads_fail_as_offsets_drawn_one_by_one_do() {
    let model = RetryModel {
        failure_rate: 0.1,
        steps: [Step::list(), vec![Step { revolutions: 2, aim: -0.12, ..Step::FIRST }]].concat(),
        ..model(0.06, 0.05)
    };
    let (table, sigma) = (model.table("far").unwrap(), model.sigma().unwrap());
    let mut rng = Streams::new(11).stream("offsets");
    let gauss = |rng: &mut Rng, deviation: f64| {
        Normal { mean: 0.0, deviation }.quantile(rng.unit().max(1e-300))
    };
    let sectors = 200_000_u32;
    let mut failed = [[0_u32; 9]; 4];
    for _ in 0..sectors {
        let written = gauss(&mut rng, model.written_offset);
        let mut alive = [true; 4];
        for (at, step) in model.steps.iter().enumerate() {
            let pass = gauss(&mut rng, model.pass_offset);
            let noise = RetryModel::noise(*step, sigma, written, pass);
            let coin = rng.unit();
            for (level, fit) in FITS.into_iter().enumerate() {
                alive[level] &= coin < noise.map_or(1.0, |noise| fit.failure(noise));
                failed[level][at] += u32::from(alive[level]);
            }
            if alive == [false; 4] {
                break;
            }
        }
    }
    for (level, forced) in ZeroForcing::ALL.into_iter().enumerate() {
        for (step, failed) in failed[level].into_iter().enumerate() {
            let law = table.all_fail(forced, step);
            let error = (law * (1.0 - law) / f64::from(sectors)).sqrt();
            let share = f64::from(failed) / f64::from(sectors);
            assert!((share - law).abs() <= 4.0 * error, "{forced} {step}: {share}, law {law}");
        }
    }
    assert!(failed[0][8] > 20, "{failed:?}");
}

/// Where sectors are equal, 512 bytes are worth a million times; where heads wander by 2 %, less than a hundred.
#[test]
fn zeroes_are_worth_less_the_more_heads_wander() {
    let gains = [0.0, 0.01, 0.02, 0.04].map(|offset| {
        let table = model(offset, offset).table("t").unwrap();
        5e-3 / table.all_fail(ZeroForcing::B512, 0)
    });
    assert!(gains.windows(2).all(|pair| pair[0] > pair[1]), "{gains:?}");
    assert!(gains[0] > 1e6 && gains[2] < 100.0, "{gains:?}");
}

#[test]
fn more_iterations_on_the_same_samples_count_once() {
    let rows = |second: &str| {
        format!(
            "levelhead retry table 1\nsteps 0 {second} 3\n# made up\nclass 1\n0 0.5 0.2 0.1\n256 0.4 0.1 0.1\n\
             512 0.3 0 0\n1024 0 0 0\n"
        )
    };
    let same = RetryTable::parse("same", &rows("0")).unwrap();
    assert_eq!([0, 1, 2].map(|step| same.pass(step)), [0, 0, 1]);
    for (step, law) in [(0, 0.5), (1, 0.2), (2, 0.02)] {
        assert!((same.all_fail(ZeroForcing::None, step) - law).abs() < 1e-15);
    }
    assert!((same.revolutions_mean(ZeroForcing::None).unwrap() - 3.0).abs() < 1e-15);
    assert_eq!(same.first_pass_end(), 1);
    assert_eq!(same.revolutions_mean(ZeroForcing::B1024), None);
    let other = RetryTable::parse("other", &rows("1")).unwrap();
    assert_eq!([0, 1, 2].map(|step| other.pass(step)), [0, 1, 2]);
    for (step, law) in [(0, 0.5), (1, 0.1), (2, 0.01)] {
        assert!((other.all_fail(ZeroForcing::None, step) - law).abs() < 1e-15);
    }
    let mean = (1.0 * 0.5 + 3.0 * 0.1) / 0.5;
    assert!((other.revolutions_mean(ZeroForcing::None).unwrap() - mean).abs() < 1e-15);
}

#[test]
fn classes_are_drawn_by_their_shares() {
    let table = model(0.02, 0.02).table("t").unwrap();
    let shares: f64 = (0..table.class_count()).map(|class| table.share(class)).sum();
    assert!((shares - 1.0).abs() < 1e-12);
    assert_eq!((table.class(0.0), table.class(1.0 - 1e-16)), (0, table.class_count() - 1));
    let n = 100_000_u32;
    let middle = table.class_count() / 2;
    let drawn = (0..n).filter(|at| table.class(f64::from(*at) / f64::from(n)) == middle).count();
    assert!((drawn as f64 / f64::from(n) - table.share(middle)).abs() < 2.0 / f64::from(n));
}

#[test]
fn a_table_reads_back_as_it_is_written() {
    for (name, model) in RetryModel::shipped() {
        let table = model.table(name).unwrap();
        assert_eq!(RetryTable::parse(name, &table.to_string()), Ok(table), "{name}");
    }
}

#[test]
fn tables_that_cannot_be_are_refused_with_the_line() {
    let good = "levelhead retry table 1\nsteps 0 1\nclass 1\n0 0.5 0.5\n256 0.4 0.4\n512 0.3 0.3\n1024 0.2 0.2\n";
    assert!(RetryTable::parse("good", good).is_ok());
    for (from, to, expected) in [
        ("table 1", "table 2", "a retry table begins with the line 'levelhead retry table 1'"),
        ("steps 0 1", "steps 0 -1", "line 2: expected 'steps' and the revolutions of each"),
        ("steps 0 1", "steps", "a retry table has 1 to 32 steps, not 0"),
        ("steps 0 1", "steps 1 1", "the first step costs no revolution, not 1"),
        (
            "steps 0 1",
            "steps 0 4294967295",
            "all steps together cost at most 1000 revolutions, not 4294967295",
        ),
        ("class 1\n", "class 1 1\n", "line 3: expected 'class' and its share of the sectors"),
        (
            "class 1\n",
            "class 0.5\n",
            "the shares of the classes are 0 to 1 and add up to 1, not 0.5",
        ),
        (
            "class 1\n",
            "class nan\n",
            "the shares of the classes are 0 to 1 and add up to 1, not NaN",
        ),
        (
            "256 0.4 0.4",
            "256 0.4",
            "line 5: expected 0, 256, 512 or 1024 in their order, and a probability for each step",
        ),
        (
            "256 0.4 0.4",
            "256 0.6 0.4",
            "step 0 of class 0: probabilities are 0 to 1, do not grow with zeroes, nor from one step to the next on the \
             same samples",
        ),
        ("1024 0.2 0.2\n", "", "it ends before its last class does"),
    ] {
        let text = good.replacen(from, to, 1);
        assert_eq!(RetryTable::parse("bad", &text).unwrap_err().to_string(), expected);
    }
    for text in ["", "levelhead retry table 1", "levelhead retry table 1\nsteps 0"] {
        assert!(RetryTable::parse("short", text).is_err(), "{text:?}");
    }
}

/// Bytes changed, lines taken out and put elsewhere: a table or a sentence, and what is a table keeps its invariants.
#[test]
fn no_text_is_a_panic() {
    let good = model(0.02, 0.02).table("t").unwrap().to_string();
    let short: String = good.lines().take(7).map(|line| format!("{line}\n")).collect();
    let head = short.lines().find(|line| line.starts_with("class ")).unwrap();
    let short = short.replacen(head, "class 1", 1);
    assert!(RetryTable::parse("t", &short).is_ok());
    let mut rng = Streams::new(4).stream("texts");
    let (mut tables, mut refused) = (0, 0);
    for _ in 0..3_000 {
        let mut bytes = short.clone().into_bytes();
        for _ in 0..1 + rng.below(3) {
            let at = rng.below(bytes.len() as u64) as usize;
            match rng.below(4) {
                0 => bytes[at] = b"0123456789.e-+ \nnaif#"[rng.below(21) as usize],
                1 => drop(bytes.remove(at)),
                2 => bytes.truncate(at.max(1)),
                _ => bytes.insert(at, b"019 -e.\n"[rng.below(8) as usize]),
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        match RetryTable::parse("t", &text) {
            Ok(table) => {
                tables += 1;
                assert!(table.all_fail(ZeroForcing::None, 0) <= 1.0 + 1e-12);
                assert!(!table.to_string().contains("NaN"));
            }
            Err(error) => {
                refused += 1;
                assert!(!error.to_string().contains('\n'));
            }
        }
    }
    assert!(refused > 300 && tables > 300, "{tables} tables, {refused} sentences");
}

#[test]
fn models_that_cannot_be_are_refused_with_the_limit() {
    let step = |step: Step| RetryModel { steps: vec![Step::FIRST, step], ..model(0.0, 0.0) };
    for (bad, expected) in [
        (
            RetryModel { failure_rate: 0.0, ..model(0.0, 0.0) },
            "the failure rate of a first pass is 1e-12 to 0.4, not 0",
        ),
        (
            model(0.3, 0.0),
            "the standard deviation of an offset is 0% to 20% of the track pitch, not 30%",
        ),
        (RetryModel { steps: vec![], ..model(0.0, 0.0) }, "a drive tries 1 to 32 steps, not 0"),
        (
            RetryModel { steps: vec![Step { aim: 0.1, ..Step::FIRST }], ..model(0.0, 0.0) },
            "the first step is the first pass: without revolutions, aim and averaging",
        ),
        (
            step(Step::FIRST),
            "step 1 costs no revolution: it has the samples of the step before, and may differ from it in more \
             iterations alone",
        ),
        (
            step(Step { revolutions: 101, ..Step::FIRST }),
            "a step takes 0 to 100 revolutions and averages 1 to 100 passes, not 101",
        ),
        (
            step(Step { revolutions: 1, aim: 0.7, ..Step::FIRST }),
            "a step aims -50% to 50% of the track pitch beside the track, not 70%",
        ),
    ] {
        assert_eq!(bad.table("bad").unwrap_err().to_string(), expected);
    }
    let many = [vec![Step::FIRST], vec![Step { revolutions: 100, ..Step::FIRST }; 11]].concat();
    let error = RetryModel { steps: many, ..model(0.0, 0.0) }.table("bad").unwrap_err();
    assert_eq!(error.to_string(), "all steps together cost at most 1000 revolutions, not 1100");
    let error = step(Step { revolutions: 1, iterations: 51, ..Step::FIRST }).table("bad");
    let error = error.unwrap_err().to_string();
    assert!(error.starts_with("failure rates are known of ") && error.ends_with("not of 51"));
}
