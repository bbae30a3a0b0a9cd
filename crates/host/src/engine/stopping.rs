//! The end of an engine: how the drives are left.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use levelhead_array::Ending;

use super::Engine;
use super::own::Rest;
use crate::error::HostError;
use crate::words::drives;

/// How long the drives may take to close: what they hold is safe by then.
const CLOSE_MAX: Duration = Duration::from_secs(5);

/// Closes the drives on a thread of its own: a close may hang, as that of a file on a server does that is gone.
fn close(engine: Engine) {
    let (closed, is_closed) = mpsc::channel::<()>();
    let close = move || {
        drop(engine);
        drop(closed);
    };
    // Without a thread they are closed here.
    drop(thread::Builder::new().name("closing".into()).spawn(close));
    // The channel ends when the engine has been dropped.
    let _over = is_closed.recv_timeout(CLOSE_MAX);
}

impl Engine {
    /// Closes the drives, and tells those who wanted it.
    pub(super) fn end(mut self, ending: Ending) -> Rest {
        let left = self.end_short_limits();
        let result = match ending {
            Ending::Clean if left.is_empty() => Ok(()),
            Ending::Clean => Err(HostError::new("the array was stopped cleanly")),
            Ending::Failed => Err(HostError::new(format!(
                "more drives are missing or failed than the array survives: {}",
                self.parts.array.lost()
            ))),
            Ending::Unsafe { silent } => {
                let (answer, them) = match silent.len() {
                    1 => ("does not answer", "it"),
                    _ => ("do not answer", "them"),
                };
                Err(HostError::new(format!(
                    "{} {answer}, and the array needs {them}: it was not stopped cleanly",
                    drives(silent)
                )))
            }
        };
        let tell_left = |error: HostError| {
            let sentences = left.iter().map(|sentence| format!("; {sentence}"));
            HostError::new(format!("{error}{}", sentences.collect::<String>()))
        };
        let result = result.map_err(tell_left);
        let stopping = std::mem::take(&mut self.stopping);
        let rest = self.parts.own.rest();
        close(self); // The operator who is told may open the drives at once.
        for reply in stopping {
            // The thread that asked may not wait for it any more.
            drop(reply.send(result.clone()));
        }
        rest
    }
}
