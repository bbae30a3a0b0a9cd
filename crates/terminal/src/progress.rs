//! Progress bars on a terminal.

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use levelhead_app::{NoProgress, Progress, Task};

use crate::Output;

/// Bars on standard error, if that is a terminal and `--quiet` is not given.
pub fn bars(output: Output) -> Box<dyn Progress> {
    if output.quiet { Box::new(NoProgress) } else { Box::new(Bars::new()) }
}

struct Bars(MultiProgress);

struct Bar(ProgressBar);

impl Bars {
    fn new() -> Self {
        // Hidden by itself where standard error is no terminal.
        Self(MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(10)))
    }
}

impl Progress for Bars {
    fn begin(&self, label: &str, total: u64) -> Box<dyn Task> {
        let (bar, template) = if total == 0 {
            (ProgressBar::no_length(), "{prefix:>20} {spinner} {pos} {elapsed}")
        } else {
            (ProgressBar::new(total), "{prefix:>20} [{wide_bar}] {percent:>3}% {eta:>4}")
        };
        let style = ProgressStyle::with_template(template).expect("the templates above are valid");
        let bar = self.0.add(bar.with_style(style.progress_chars("=> ")));
        bar.set_prefix(label.to_owned());
        Box::new(Bar(bar))
    }
}

impl Task for Bar {
    fn reach(&self, done: u64) {
        self.0.set_position(done);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
