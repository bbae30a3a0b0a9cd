//! What is printed by a thread that no one waits for without a limit.
//!
//! A pipe that is full and not read, or a terminal that was stopped with Ctrl-S, takes no text for as long as
//! it likes. What has to go on meanwhile hands its text over here.

use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use levelhead_app::{AppError, threads};

/// How long the last lines of a program may take to be printed.
pub const FAREWELL: Duration = Duration::from_secs(2);

/// See the module.
pub struct Printer<T> {
    lines: Sender<T>,
    /// Is closed when all is printed.
    printed: Receiver<()>,
}

impl<T: Send + 'static> Printer<T> {
    /// Prints what comes, in order.
    ///
    /// # Errors
    ///
    /// The system has no thread left.
    pub fn start(mut print: impl FnMut(T) + Send + 'static) -> Result<Self, AppError> {
        let (sender, lines) = mpsc::channel::<T>();
        let (prints, printed) = mpsc::channel();
        threads::start("printer", move || {
            lines.into_iter().for_each(&mut print);
            drop(prints);
        })?;
        Ok(Self { lines: sender, printed })
    }

    /// Where to put it.
    pub fn lines(&self) -> Sender<T> {
        self.lines.clone()
    }

    /// Waits until all is printed and no one else has something to print, and no longer than this.
    pub fn end(self, by: Instant) {
        let Self { lines, printed } = self;
        drop(lines);
        let left = by.saturating_duration_since(Instant::now());
        let _left_behind = printed.recv_timeout(left);
    }
}

/// Says the last thing that a program says.
pub fn say_last(text: String) {
    // Without a thread a reader may hold it up, and still hears why the program ends.
    let Ok(printer) = Printer::start(|text: String| crate::say(&text)) else {
        return crate::say(&text);
    };
    drop(printer.lines().send(text));
    printer.end(Instant::now() + FAREWELL);
}
