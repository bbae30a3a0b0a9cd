//! Every page that `--report` writes, as a browser shows it: no error, no request to anywhere, everything
//! within its frame, legible on a telephone and on a screen, on light and on dark ground, with the script
//! and without it, and figures that answer to pointer and keys. What every figure looks like is
//! compared with a kept set, as coarse grids of colours that letters hardly change.
//!
//! The commands themselves write the pages, but for studies that take too long for a test: those have
//! made-up numbers. The demo measures in real time, so its page is opened twice: with what it has just
//! measured, whose looks nothing is said of, and with made-up numbers, which always look the same.
//!
//! `LEVELHEAD_KEEP_PAGES=1` keeps what the figures look like now; `LEVELHEAD_PAGES=fleet` opens the
//! pages with `fleet` in their names only.

mod chromium;
mod sheets;
#[path = "../../../cli/tests/support/mod.rs"]
mod support;

use std::collections::BTreeSet;
use std::fs;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use chromium::{Chromium, Tab};
use serde_json::{Value, json};
use sheets::{Care, Looks, Made, Sheet, sheets};
use support::{Shelf, is_there, levelhead};

const LOOK: &str = include_str!("look.js");
const RECORD: &str = include_str!("record.js");
const REACH: &str = include_str!("reach.js");

/// How a page is opened.
#[derive(Clone, Copy, Debug)]
struct Way {
    name: &'static str,
    width: u32,
    scheme: &'static str,
    script: Script,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Script {
    Runs,
    Off,
}

const SCREEN: Way = Way { name: "screen", width: 1440, scheme: "light", script: Script::Runs };
const TELEPHONE: Way = Way { name: "telephone", width: 360, scheme: "dark", script: Script::Runs };
/// Each width and each ground with the script; without it the other way round.
const WAYS: [Way; 4] = [
    SCREEN,
    TELEPHONE,
    Way { name: "screen, still", width: 1440, scheme: "dark", script: Script::Off },
    Way { name: "telephone, still", width: 360, scheme: "light", script: Script::Off },
];

/// What is asked of a page, besides whether it is whole and legible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Nothing,
    /// Whether its figures answer.
    Answers,
    /// What its figures look like.
    Looks,
    /// Both.
    Everything,
}

impl Asked {
    const fn has_answers(self) -> bool {
        matches!(self, Self::Answers | Self::Everything)
    }

    const fn has_looks(self) -> bool {
        matches!(self, Self::Looks | Self::Everything)
    }
}

/// What the figures of a page look like: a coarse grid of colours each.
#[derive(Clone, Debug)]
struct Look {
    way: Way,
    figures: Vec<Vec<String>>,
}

/// Opens a page and says what is wrong with what the browser told meanwhile.
fn open(browser: &mut Chromium, tab: &Tab, sheet: &Sheet, way: Way) -> Vec<String> {
    let Way { width, scheme, script, .. } = way;
    let size = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
    browser.call(tab, "Emulation.setDeviceMetricsOverride", &size);
    let scheme = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
    browser.call(tab, "Emulation.setEmulatedMedia", &scheme);
    let off = json!({"value": script == Script::Off});
    browser.call(tab, "Emulation.setScriptExecutionDisabled", &off);
    browser.take_events(tab);
    let url = format!("file://{}", sheet.path.display());
    browser.call(tab, "Page.navigate", &json!({"url": url}));
    browser.wait_for(tab, "Page.loadEventFired");
    if script == Script::Runs {
        // What is drawn a frame later is drawn.
        let frames =
            "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))";
        browser.value(tab, &format!("{frames}.then(() => 0)"));
    }
    told(browser, tab, &url)
}

/// Errors and requests among what the browser told of a page.
fn told(browser: &mut Chromium, tab: &Tab, url: &str) -> Vec<String> {
    let complaint = |event: Value| {
        let params = &event["params"];
        match event["method"].as_str()? {
            "Runtime.exceptionThrown" => {
                let details = &params["exceptionDetails"];
                Some(format!(
                    "an exception: {} {}",
                    details["text"], details["exception"]["description"]
                ))
            }
            "Runtime.consoleAPICalled"
                if ["error", "warning", "assert"].contains(&params["type"].as_str()?) =>
            {
                Some(format!("on the console: {}", params["args"]))
            }
            "Log.entryAdded"
                if ["error", "warning"].contains(&params["entry"]["level"].as_str()?) =>
            {
                Some(format!("on the console: {}", params["entry"]["text"]))
            }
            "Network.requestWillBeSent" => {
                let asked = params["request"]["url"].as_str()?;
                let is_own =
                    asked == url || asked.starts_with("data:") || asked.starts_with("blob:");
                (!is_own).then(|| format!("a request to {asked}"))
            }
            _ => None,
        }
    };
    browser.take_events(tab).into_iter().filter_map(complaint).collect()
}

fn sentences(value: &Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(|one| one.as_str().unwrap().to_owned()).collect()
}

fn look(browser: &mut Chromium, tab: &Tab) -> Vec<String> {
    sentences(&browser.value(tab, LOOK))
}

/// Whether figures answer to keys and pointer, and every control is reached by the tabulator.
fn reach(browser: &mut Chromium, tab: &Tab, care: Care) -> Vec<String> {
    let [controls_max, plots_max] = care.limits();
    browser.value(tab, &format!("{REACH};0"));
    let mut problems = BTreeSet::new();
    let controls = browser.value(tab, "lhReach.controls().length").as_u64().unwrap();
    for _ in 0..controls.min(controls_max) + 2 {
        press(browser, tab, "Tab");
        let ring = browser.value(tab, "lhReach.mark()");
        if let Some(problem) = ring.as_str().filter(|text| !text.is_empty()) {
            problems.insert(problem.to_owned());
        }
    }
    if controls <= controls_max {
        let missed = sentences(&browser.value(tab, "lhReach.missed()"));
        problems.extend(missed.iter().map(|control| format!("not reached by keys: {control}")));
    }
    let plots = browser.value(tab, "lhReach.plots().length").as_u64().unwrap();
    for idx in 0..plots.min(plots_max) {
        let mut says = |problem: &str| problems.insert(format!("figure {idx}: {problem}"));
        let read = format!("lhReach.read({idx})");
        browser.value(tab, &format!("lhReach.focus({idx})"));
        let before = browser.value(tab, &read);
        press(browser, tab, "ArrowRight");
        let first = browser.value(tab, &read);
        press(browser, tab, "End");
        let last = browser.value(tab, &read);
        if before == first {
            says("an arrow moves no cursor");
        }
        if first == last && !is_single(browser, tab, idx) {
            says("the cursor does not go to the end");
        }
        let untold = browser.value(tab, &format!("lhReach.told({idx})"));
        if let Some(problem) = untold.as_str().filter(|text| !text.is_empty()) {
            says(problem);
        }
        browser.value(tab, "document.activeElement.blur()");
        let still = browser.value(tab, &read);
        let at = browser.value(tab, &format!("lhReach.middle({idx})"));
        let (x, y) = (at[0].as_f64().unwrap(), at[1].as_f64().unwrap());
        for step in [-2.0, 0.0] {
            let to = json!({"type": "mouseMoved", "x": x + step, "y": y});
            browser.call(tab, "Input.dispatchMouseEvent", &to);
        }
        let frame = "new Promise(done => requestAnimationFrame(() => done(0)))";
        browser.value(tab, frame);
        if browser.value(tab, &read) == still {
            says("the pointer is not answered");
        }
        for act in ["toggle", "zoom", "drag", "save"] {
            let problem = browser.value(tab, &format!("lhReach.{act}({idx})"));
            if let Some(problem) = problem.as_str().filter(|text| !text.is_empty()) {
                says(problem);
            }
        }
    }
    problems.into_iter().collect()
}

/// Whether a figure has one place only, so that its end is its beginning.
fn is_single(browser: &mut Chromium, tab: &Tab, idx: u64) -> bool {
    let count = format!(
        "(data => (data.groups ?? data.columns ?? new Array(2)).length)(JSON.parse(\
         lhReach.plots()[{idx}].closest('figure').querySelector('script').textContent))"
    );
    browser.value(tab, &count).as_u64().unwrap() < 2
}

fn press(browser: &mut Chromium, tab: &Tab, key: &str) {
    let code = match key {
        "Tab" => 9,
        "End" => 35,
        "ArrowRight" => 39,
        other => panic!("{other} is not pressed here"),
    };
    for kind in ["rawKeyDown", "keyUp"] {
        let event = json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code});
        browser.call(tab, "Input.dispatchKeyEvent", &event);
    }
}

/// How large a picture of a page is beside the page: large enough for coarse grids, and sooner made.
const SCALE: f64 = 0.25;

/// What the figures of the open page look like: for each of them a few lines of colours.
fn grids(browser: &mut Chromium, tab: &Tab, desk: &Tab) -> Vec<Vec<String>> {
    browser.value(tab, &format!("{REACH};0"));
    let figures = browser.value(tab, "lhReach.figures()");
    let metrics = browser.call(tab, "Page.getLayoutMetrics", &json!({}));
    let size = &metrics["cssContentSize"];
    let ends = figures
        .as_array()
        .unwrap()
        .iter()
        .map(|figure| figure["y"].as_f64().unwrap() + figure["height"].as_f64().unwrap());
    let down = ends.fold(1.0, f64::max).ceil();
    let clip = json!({"x": 0, "y": 0, "width": size["width"], "height": down, "scale": SCALE});
    let shot = json!({"format": "png", "captureBeyondViewport": true, "clip": clip});
    let image = browser.call(tab, "Page.captureScreenshot", &shot);
    let grids =
        browser.value(desk, &format!("lhReach.grids({}, {figures}, {SCALE})", image["data"]));
    grids.as_array().unwrap().iter().map(sentences).collect()
}

/// A figure's colours differ by more than this, of 255, on average over its grid or in a field of it.
const MEAN_MAX: f64 = 7.0;
const FIELD_MAX: f64 = 64.0;

/// How a figure differs from what was kept of it, if it does.
fn difference(kept: &[&str], now: &[String]) -> Option<String> {
    let fields = |lines: &[&str]| -> Vec<[f64; 3]> {
        let words = lines.iter().flat_map(|line| line.split(' '));
        let channel =
            |word: &str, at: usize| f64::from(u8::from_str_radix(&word[at..at + 2], 16).unwrap());
        words.map(|word| [0, 2, 4].map(|at| channel(word, at))).collect()
    };
    let now: Vec<&str> = now.iter().map(String::as_str).collect();
    let (kept, now) = (fields(kept), fields(&now));
    if kept.len() != now.len() {
        return Some(format!("{} fields of colours, kept are {}", now.len(), kept.len()));
    }
    let apart: Vec<f64> = kept
        .iter()
        .zip(&now)
        .map(|(a, b)| a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum::<f64>() / 3.0)
        .collect();
    let mean = apart.iter().sum::<f64>() / apart.len() as f64;
    let most = apart.iter().copied().fold(0.0, f64::max);
    (mean > MEAN_MAX || most > FIELD_MAX)
        .then(|| format!("colours differ by {mean:.1} on average and by {most:.1} at most"))
}

/// The folder with what figures look like, a file a page.
fn kept_folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/pages/kept")
}

/// Files of the kept set that are of no page.
fn left_over(sheets: &[Sheet]) -> Vec<String> {
    let is_of_a_page = |name: &str| {
        let mut kept = sheets.iter().filter(|sheet| sheet.looks == Looks::Kept);
        kept.any(|sheet| format!("{}.txt", sheet.name) == name)
    };
    let files = fs::read_dir(kept_folder()).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    names
        .filter(|name| !is_of_a_page(name))
        .map(|name| format!("{name} is kept, and there is no such page"))
        .collect()
}

/// Compares what figures look like with the kept set, or keeps it.
fn compare(name: &str, looks: &[Look]) -> Vec<String> {
    let path = kept_folder().join(format!("{name}.txt"));
    let titled = || {
        looks.iter().flat_map(|Look { way, figures }| {
            let title = |idx: usize| format!("# {}, figure {idx}", way.name);
            figures.iter().enumerate().map(move |(idx, lines)| (title(idx), lines))
        })
    };
    if std::env::var_os("LEVELHEAD_KEEP_PAGES").is_some() {
        let text: String =
            titled().map(|(title, lines)| format!("{title}\n{}\n", lines.join("\n"))).collect();
        fs::write(path, text).unwrap();
        return Vec::new();
    }
    let Ok(text) = fs::read_to_string(&path) else {
        return vec!["nothing is kept of it; LEVELHEAD_KEEP_PAGES=1 does".to_owned()];
    };
    let mut kept: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in text.lines() {
        match line.starts_with('#') {
            true => kept.push((line, Vec::new())),
            false => kept.last_mut().expect("a title comes first").1.push(line),
        }
    }
    let mut problems = Vec::new();
    if kept.len() != titled().count() {
        problems.push(format!("{} figures, kept are {}", titled().count(), kept.len()));
    }
    for ((title, lines), (kept_title, kept_lines)) in titled().zip(&kept) {
        if title != *kept_title {
            problems.push(format!("{title}, kept is {kept_title}"));
        } else if let Some(problem) = difference(kept_lines, lines) {
            problems.push(format!("{}: {problem}", &title[2..]));
        }
    }
    problems
}

/// Two tabs: one with the page, one on which pictures are looked at.
struct Bench {
    browser: Chromium,
    tab: Tab,
    desk: Tab,
}

impl Bench {
    fn new() -> Self {
        let mut browser = Chromium::start();
        // Only the page in front draws frames.
        let (desk, tab) = (browser.tab(), browser.tab());
        browser.call(&tab, "Page.bringToFront", &json!({}));
        browser.call(&tab, "Emulation.setFocusEmulationEnabled", &json!({"enabled": true}));
        browser.call(&tab, "Page.addScriptToEvaluateOnNewDocument", &json!({"source": RECORD}));
        browser.value(&desk, &format!("{REACH};0"));
        Self { browser, tab, desk }
    }

    /// All that is wrong with a page, and what its figures look like.
    fn examine(&mut self, sheet: &Sheet, ways: &[Way], asked: Asked) -> (Vec<String>, Vec<Look>) {
        let Self { browser, tab, desk } = self;
        let url = format!("file://{}", sheet.path.display());
        let mut problems = Vec::new();
        let mut looks = Vec::new();
        for &way in ways {
            let mut found = open(browser, tab, sheet, way);
            found.extend(look(browser, tab));
            if way.script == Script::Runs && asked.has_looks() {
                looks.push(Look { way, figures: grids(browser, tab, desk) });
            }
            if way.name == SCREEN.name && asked.has_answers() {
                found.extend(reach(browser, tab, sheet.care));
            }
            found.extend(told(browser, tab, &url));
            let (name, way) = (&sheet.name, way.name);
            problems.extend(found.iter().map(|problem| format!("{name}, {way}: {problem}")));
        }
        (problems, looks)
    }

    /// All that is wrong with a page, looks that are not the kept ones included.
    fn check(&mut self, sheet: &Sheet) -> Vec<String> {
        let asked = match sheet.looks {
            Looks::Kept => Asked::Everything,
            Looks::Vary => Asked::Answers,
        };
        let (mut problems, looks) = self.examine(sheet, sheet.care.ways(), asked);
        if sheet.looks == Looks::Kept {
            let unlike = compare(&sheet.name, &looks);
            problems.extend(unlike.iter().map(|problem| format!("{}: {problem}", sheet.name)));
        }
        problems
    }
}

#[test]
fn every_page_is_whole_legible_and_answers() {
    if !is_there("chromium") {
        return;
    }
    let shelf = Shelf::new();
    let only = std::env::var("LEVELHEAD_PAGES").unwrap_or_default();
    let sheets: Vec<Sheet> =
        sheets(&shelf).into_iter().filter(|sheet| sheet.name.contains(&only)).collect();
    assert!(!sheets.is_empty(), "no page is called '{only}'");
    let next = AtomicUsize::new(0);
    let count = std::thread::available_parallelism().map_or(2, NonZero::get).clamp(2, 4);
    let check = || {
        let mut bench = Bench::new();
        let take = || sheets.get(next.fetch_add(1, Ordering::Relaxed));
        let check = |sheet: &Sheet| {
            sheet.make();
            bench.check(sheet)
        };
        std::iter::from_fn(take).flat_map(check).collect::<Vec<String>>()
    };
    let mut problems = std::thread::scope(|scope| {
        let benches: Vec<_> = (0..count).map(|_| scope.spawn(check)).collect();
        let said = benches.into_iter().map(|bench| bench.join().expect("no page ends a bench"));
        said.flatten().collect::<Vec<_>>()
    });
    if only.is_empty() {
        problems.extend(left_over(&sheets));
    }
    problems.sort_unstable();
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

/// A page with something wrong in it, and what must be said of it.
struct Fault {
    says: &'static str,
    /// What is written instead of what; at the end of the page if there is nothing to replace.
    change: [&'static str; 2],
    way: Way,
    asked: Asked,
}

const AT_END: &str = "</main>";

/// One for each check.
const FAULTS: [Fault; 31] = {
    const fn on(way: Way, says: &'static str, change: [&'static str; 2]) -> Fault {
        Fault { says, change, way, asked: Asked::Nothing }
    }
    const fn fault(says: &'static str, change: [&'static str; 2]) -> Fault {
        on(SCREEN, says, change)
    }
    const fn answer(says: &'static str, change: [&'static str; 2]) -> Fault {
        Fault { says, change, way: SCREEN, asked: Asked::Answers }
    }
    const REQUEST: &str = "<img alt=\"\" src=\"http://127.0.0.1:9/x.png\"></main>";
    const TABLE: &str = "<div class=\"lh-wide\"><table class=\"lh-table\"><tr><th><div style=\"width:400px\">case</div></th>\
                         <th>ours</th></tr></table></div></main>";
    const POLICY: &str = "http-equiv=\"Content-Security-Policy\"";
    [
        fault(
            "a request to http://127.0.0.1:9/x.png",
            [POLICY, "name=\"none\" lang=\"with request\""],
        ),
        fault("on the console: \"Loading the image", [AT_END, REQUEST]),
        fault("on the console: [{", [AT_END, "</main><script>console.error('x')</script>"]),
        fault("an exception: ", [AT_END, "</main><script>throw new Error('x')</script>"]),
        fault("letters of 9px: tiny", [AT_END, "<p style=\"font-size:9px\">tiny</p></main>"]),
        fault(
            "a contrast of 1.6",
            [AT_END, "<p style=\"color:#ccc;background:#fff\">pale</p></main>"],
        ),
        on(
            TELEPHONE,
            "the page scrolls to the side",
            [AT_END, "<div style=\"width:400px\">_</div></main>"],
        ),
        on(
            TELEPHONE,
            "text beyond the page: far",
            [AT_END, "<p style=\"margin-left:340px\">far</p></main>"],
        ),
        fault(
            "a label outside 'How long requests take': far",
            ["</svg>", "<text x=\"718\" y=\"99\">far</text></svg>"],
        ),
        fault(
            "text over text in 'How long requests take'",
            [
                "</svg>",
                "<text x=\"300\" y=\"99\">one</text><text x=\"310\" y=\"102\">two</text></svg>",
            ],
        ),
        fault(
            "letters of 7.5 px",
            ["</svg>", "<text x=\"300\" y=\"99\" font-size=\"8\">few</text></svg>"],
        ),
        fault(
            "a path outside the frame",
            ["</svg>", "<g data-of=\"0\"><path d=\"M99 99L9 99\"/></g></svg>"],
        ),
        fault(
            "a rect outside the frame",
            [
                "</svg>",
                "<g data-of=\"0\"><rect x=\"99\" y=\"99\" width=\"9\" height=\"900\"/></g></svg>",
            ],
        ),
        fault(
            "text over text in 'Latency of all requests'",
            ["font: FONT,", "font: '40px serif',"],
        ),
        fault(
            "a curve outside the frame of 'Latency of all",
            ["scale(data.x, whole.x)", "scale(data.x, [100, 200])"],
        ),
        on(TELEPHONE, "a column beyond the page", ["</main>", TABLE]),
        on(TELEPHONE, "no hint that a table scrolls", [".lh-wide[tabindex]::before", ".none"]),
        on(
            TELEPHONE,
            "no edge where a table goes on",
            ["attachment:local,local", "attachment:scroll,scroll"],
        ),
        fault("figures below one another", [".lh-row{display:flex", ".lh-row{display:block"]),
        fault("a help that is there twice", ["helped.has(text)", "false"]),
        fault(
            "a label cut short in 'How long requests take'",
            ["</svg>", "<text x=\"300\" y=\"99\">assisted, eR…</text></svg>"],
        ),
        answer(
            "an arrow moves no cursor",
            ["ArrowRight: () => goTo(step(1, apart))", "ArrowRight: () => {}"],
        ),
        answer(
            "not reached by keys: div 'Latency of all",
            ["class: \"lh-plot\", tabindex: \"0\"", "class: \"lh-plot\", tabindex: \"-1\""],
        ),
        answer(
            "no ring around",
            ["outline:2px solid var(--lh-cool);outline-offset", "outline:none;outline-offset"],
        ),
        answer(
            "the pointer is not answered",
            ["addEventListener(\"pointermove\"", "addEventListener(\"none\""],
        ),
        answer(
            "a series does not go off",
            ["plot.setSeries(idx + 1, { show: !off.has(idx) });", ""],
        ),
        answer("the value of a series is not said", ["named.join(\"\")", "\"\""]),
        answer("a key lies inside an image", [".setAttribute(\"role\", \"group\")", ".lang"]),
        answer("dragging enlarges without a limit", ["const LEAST = 1e-4", "const LEAST = 1e-9"]),
        answer("what is dragged over is not shown larger", ["setSelect: [dragged]", ""]),
        answer(
            "what is saved is not an SVG",
            ["new XMLSerializer().serializeToString(copy)", "\"<svg\""],
        ),
    ]
};

#[test]
#[ignore = "the canaries of this program: cargo xtask soak pages"]
fn each_planted_fault_is_caught() {
    if !is_there("chromium") {
        return;
    }
    let shelf = Shelf::new();
    let path = shelf.dir.path().join("page.html");
    let load = ["replay", "--quiet", "--synthetic", "count=300", "--policy", "normal,level"];
    levelhead(&[&load[..], &["--report", path.to_str().unwrap()]].concat()).good();
    let html = fs::read_to_string(&path).unwrap();
    let (name, made) = ("fault".to_owned(), Made::Before);
    let sheet = Sheet { name, path, made, care: Care::Faulty, looks: Looks::Vary };
    let mut bench = Bench::new();
    let (problems, looks) = bench.examine(&sheet, sheet.care.ways(), Asked::Everything);
    assert!(problems.is_empty(), "without a fault: {problems:?}");
    for Fault { says, change: [from, to], way, asked } in FAULTS {
        assert!(html.contains(from), "nothing to replace: {from}");
        let mut changed = html.replacen(from, to, 1);
        if to.contains("with request") {
            changed = changed.replacen(
                AT_END,
                "<img alt=\"\" src=\"http://127.0.0.1:9/x.png\"></main>",
                1,
            );
        }
        fs::write(&sheet.path, changed).unwrap();
        let (problems, _) = bench.examine(&sheet, &[way], asked);
        assert!(problems.iter().any(|problem| problem.contains(says)), "{says}: {problems:?}");
    }
    let look_of = |bench: &mut Bench, from: &str, to: &str| {
        assert!(html.contains(from), "nothing to replace: {from}");
        fs::write(&sheet.path, html.replace(from, to)).unwrap();
        bench.examine(&sheet, &[SCREEN], Asked::Looks).1.remove(0)
    };
    let differ = |look: &Look| {
        let pairs = looks[0].figures.iter().zip(&look.figures);
        pairs
            .filter_map(|(kept, now)| {
                difference(&kept.iter().map(String::as_str).collect::<Vec<_>>(), now)
            })
            .count()
    };
    for (from, to) in
        [("--lh-1:#0072b2", "--lh-1:#b20072"), (".lh-area{fill:var(--c)}", ".lh-area{fill:none}")]
    {
        let look = look_of(&mut bench, from, to);
        assert!(differ(&look) >= 1, "{to} is not seen");
    }
    let other_letters = look_of(&mut bench, "system-ui", "monospace");
    assert_eq!(differ(&other_letters), 0, "letters count too much");
}
