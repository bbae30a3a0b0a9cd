//! The end of an engine: how the drives are left.

use levelhead_array::Ending;

use super::Engine;
use super::own::Rest;
use crate::error::HostError;

impl Engine {
    /// Closes the drives, and tells those who wanted it.
    pub(super) fn end(mut self, ending: Ending) -> Rest {
        let result = match ending {
            Ending::Clean => Ok(()),
            Ending::Failed => Err(HostError::new(format!(
                "more drives are lost than the array survives: {}",
                self.parts.array.lost()
            ))),
            Ending::Unsafe { silent } => Err(HostError::new(format!(
                "drives {silent} do not answer, and the array cannot do without them: it was not \
                 stopped in good order"
            ))),
        };
        let stopping = std::mem::take(&mut self.stopping);
        let rest = self.parts.own.rest();
        drop(self); // Whoever is told may open the drives at once.
        for reply in stopping {
            // Whoever asked may have lost interest.
            drop(reply.send(result.clone()));
        }
        rest
    }
}
