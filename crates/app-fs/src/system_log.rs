//! Where the sentences go of a mount whose caller has gone on: to the machine's log, as syslog(3) would send them.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

use levelhead_units::escaped;

/// Where the machine's log listens.
const PLACE: &str = "/dev/log";

/// A warning of a program that answers for something: facility 3, severity 4.
const PRIORITY: u32 = 3 * 8 + 4;

/// See the module.
#[derive(Debug)]
pub struct SystemLog {
    socket: UnixDatagram,
}

impl SystemLog {
    /// The machine's, if it has one.
    pub fn open() -> Option<Self> {
        Self::at(Path::new(PLACE)).ok()
    }

    fn at(place: &Path) -> io::Result<Self> {
        let socket = UnixDatagram::unbound()?;
        socket.connect(place)?;
        Ok(Self { socket })
    }

    /// Writes a sentence down. One that the log does not take is left out: no file is to wait for it.
    pub fn write(&self, sentence: &str) {
        let (own, sentence) = (std::process::id(), escaped(sentence));
        let line = format!("<{PRIORITY}>levelhead[{own}]: {sentence}");
        drop(self.socket.send(line.as_bytes()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_come_to_the_log_in_their_order() {
        let folder = tempfile::TempDir::new().unwrap();
        let place = folder.path().join("log");
        assert!(SystemLog::at(&place).is_err(), "nothing listens");
        let listens = UnixDatagram::bind(&place).unwrap();
        let log = SystemLog::at(&place).unwrap();
        for sentence in ["first", "second"] {
            log.write(sentence);
        }
        let mut line = [0; 256];
        for sentence in ["first", "second"] {
            let count = listens.recv(&mut line).unwrap();
            let expected = format!("<28>levelhead[{}]: {sentence}", std::process::id());
            assert_eq!(std::str::from_utf8(&line[..count]), Ok(expected.as_str()));
        }
        drop(listens);
        log.write("nothing listens any more");
    }
}
