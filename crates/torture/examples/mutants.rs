//! Whether the crash swarms and the swarm of faulty drives notice what is wrong with the array they are built with:
//! `mutants AIMS NEXT IMAGES FIRST SECONDS`. A life with a faulty drive counts as many images as it has starts.
//!
//! The aims, which a comma parts, take turns: run `n`, from `NEXT` on, has aim `n % aims` and seed `FIRST + n`. It ends with the first broken promise, panic or hang, or after so many images or seconds. `mutants aims`
//! names all aims. The last line of the output is one of
//!
//! ```text
//! caught AIM SEED IMAGES promise|panic|hang HOW
//! left NEXT IMAGES
//! ```
//!
//! and before each run comes a line `run AIM SEED IMAGES`, which is the last one if the program dies of a run.

use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use levelhead_torture::{crash, rot};

/// A run that takes more than this time of a processor never ends: most take a tenth of a second.
const HANG_TICKS: u64 = 600;

/// When the run under way began, in ticks of the processor's time.
static BEGUN: AtomicU64 = AtomicU64::new(0);

/// Which one it is.
static RUN: Mutex<String> = Mutex::new(String::new());

/// What the last panic said.
static PANIC: Mutex<String> = Mutex::new(String::new());

/// What a run is after.
enum Aim {
    Crash(Box<crash::Aim>),
    Rot(rot::Aim),
}

impl Aim {
    /// All, each by its name.
    fn all() -> impl Iterator<Item = (String, Self)> {
        let crash = crash::Aim::ALL
            .into_iter()
            .map(|(name, aim)| (name.into(), Self::Crash(Box::new(aim))));
        let rot =
            rot::Aim::ALL.into_iter().map(|(name, aim)| (format!("drive-{name}"), Self::Rot(aim)));
        crash.chain(rot)
    }

    /// Runs a seed; returns how many images that was.
    fn run(&self, seed: u64) -> Result<u64, String> {
        match self {
            Self::Crash(aim) => {
                let mut tally = crash::Tally::default();
                let ended = crash::run(seed, **aim, &mut tally);
                ended.map(|()| tally.images).map_err(|broken| broken.to_string())
            }
            Self::Rot(aim) => {
                let mut tally = rot::Tally::default();
                let ended = rot::run(seed, *aim, &mut tally);
                ended.map(|()| 1 + tally.stops + tally.cuts).map_err(|broken| broken.to_string())
            }
        }
    }
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args == ["aims"] {
        Aim::all().for_each(|(name, _)| println!("{name}"));
        return ExitCode::SUCCESS;
    }
    let find = |name: &str| Aim::all().find(|(known, _)| known == name);
    let aims: Option<Vec<(String, Aim)>> =
        args.first().and_then(|names| names.split(',').map(find).collect());
    let number = |at: usize| args.get(at).and_then(|text| text.parse::<u64>().ok());
    let (Some(aims), Some(next), Some(most), Some(first), Some(seconds)) =
        (aims, number(1), number(2), number(3), number(4))
    else {
        eprintln!("mutants: expected AIMS NEXT IMAGES FIRST SECONDS, or aims");
        return ExitCode::from(2);
    };
    set_hook(Box::new(|info| {
        let said = info.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        *PANIC.lock().unwrap() = said;
    }));
    thread::Builder::new().spawn(watch).expect("a thread is left");
    let until = Instant::now() + Duration::from_secs(seconds);
    let mut images = 0;
    let count = aims.len() as u64;
    for at in next.. {
        if images >= most || Instant::now() >= until {
            println!("left {at} {images}");
            break;
        }
        let (name, aim) = &aims[(at % count) as usize];
        let seed = first + at;
        let which = format!("{name} {seed} {images}");
        println!("run {which}");
        *RUN.lock().unwrap() = which;
        BEGUN.store(ticks(), Relaxed);
        let how = match catch_unwind(AssertUnwindSafe(|| aim.run(seed))) {
            Ok(Ok(seen)) => {
                images += seen;
                continue;
            }
            Ok(Err(broken)) => format!("promise {broken}"),
            Err(_) => format!("panic {}", PANIC.lock().unwrap()),
        };
        println!("caught {name} {seed} {images} {how}");
        break;
    }
    ExitCode::SUCCESS
}

/// Ends the program if a run never does.
fn watch() {
    loop {
        thread::sleep(Duration::from_millis(200));
        if ticks() > BEGUN.load(Relaxed) + HANG_TICKS {
            println!(
                "caught {} hang it takes more than {} s",
                RUN.lock().unwrap(),
                HANG_TICKS / 100
            );
            std::process::exit(0);
        }
    }
}

/// The time of a processor that this program has had, in hundredths of a second.
fn ticks() -> u64 {
    let text =
        std::fs::read_to_string("/proc/self/stat").expect("Linux says what a program has done");
    let after_name = text.rsplit(')').next().unwrap_or_default();
    after_name.split_whitespace().skip(11).take(2).filter_map(|text| text.parse::<u64>().ok()).sum()
}
