//! How a client gets from a fresh socket to an export.

use std::io;

use levelhead_units::{Bytes, SECTOR_SIZE, foreign};

use crate::codec::{
    Answer, ClientDecoder, ClientFlags, ClientOption, ExportFlags, HandshakeFlags, Info,
    PAYLOAD_MAX, Refusal, ServerMessage, encode_flags, info,
};
use crate::server::Access;
use crate::tls::line::Line;

/// An export as the server describes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) size: Bytes,
    /// The most bytes of one read or write, a whole number of sectors.
    pub(super) payload_max: u32,
    pub(super) access: Access,
}

/// What an export must be capable of to be a block service.
const NEEDED: [(ExportFlags, &str); 2] =
    [(ExportFlags::SEND_FLUSH, "flush"), (ExportFlags::SEND_FUA, "write durably (FUA)")];

/// Agrees with the server on `export`, after TLS has begun if there is a session for it; requests may follow.
pub(super) fn shake_hands(
    line: &mut Line<'_>,
    decoder: &mut ClientDecoder,
    export: &str,
    tls: Option<rustls::Connection>,
) -> io::Result<Found> {
    let mut hand = Hand { line, decoder };
    let ServerMessage::Greeting(offered) = hand.receive()? else {
        return Err(broken("the server did not greet"));
    };
    if !offered.contains(HandshakeFlags::FIXED_NEWSTYLE) {
        return Err(broken("the server takes no options (it is not of the fixed newstyle)"));
    }
    let mut bytes = Vec::new();
    let no_zeroes = offered.contains(HandshakeFlags::NO_ZEROES);
    let chosen = if no_zeroes { ClientFlags::NO_ZEROES } else { ClientFlags::NONE };
    encode_flags(chosen | ClientFlags::FIXED_NEWSTYLE, &mut bytes);
    hand.line.write(&bytes)?;
    if let Some(session) = tls {
        hand.encrypt(session)?;
    }
    // Both answers will do: replies of either kind are understood.
    let _either = hand.ask(&ClientOption::StructuredReply)?;
    let wanted = vec![info::BLOCK_SIZE];
    let answers = hand.ask(&ClientOption::Go { export: export.to_owned(), wanted })?;
    let found = judge(&answers, export)?;
    decoder.begin_transmission();
    Ok(found)
}

/// What the answers to GO say, if that is an export that can be used.
fn judge(answers: &[Answer], export: &str) -> io::Result<Found> {
    let (mut described, mut limits) = (None, (1, PAYLOAD_MAX));
    for answer in answers {
        match answer {
            Answer::Info(Info::Export { size, flags }) => described = Some((*size, *flags)),
            Answer::Info(Info::BlockSize { min, max, .. }) => limits = (*min, *max),
            Answer::Refused { refusal, reason } => return Err(refused(*refusal, reason, export)),
            Answer::Info(Info::Name(_) | Info::Description(_) | Info::Other(_))
            | Answer::Ack
            | Answer::Server { .. }
            | Answer::MetaContext { .. } => {}
        }
    }
    let (size, flags) =
        described.ok_or_else(|| broken("the server accepted the export without its size"))?;
    let (block_min, payload_max) = limits;
    for (needed, verb) in NEEDED {
        if !flags.contains(needed) && !flags.contains(ExportFlags::READ_ONLY) {
            return Err(unsupported(format!("export '{export}' cannot {verb}")));
        }
    }
    let sector = SECTOR_SIZE as u32;
    if block_min == 0 || !sector.is_multiple_of(block_min) {
        return Err(unsupported(format!(
            "export '{export}' has blocks of {block_min} bytes: they must divide {SECTOR_SIZE}"
        )));
    }
    let payload_max = payload_max.min(PAYLOAD_MAX) / sector * sector;
    if payload_max == 0 {
        return Err(unsupported(format!(
            "export '{export}' takes less than {SECTOR_SIZE} bytes at a time"
        )));
    }
    let is_read_only = flags.contains(ExportFlags::READ_ONLY);
    let access = if is_read_only { Access::ReadOnly } else { Access::ReadWrite };
    Ok(Found { size, payload_max, access })
}

struct Hand<'a, 'b> {
    line: &'a mut Line<'b>,
    decoder: &'a mut ClientDecoder,
}

impl Hand<'_, '_> {
    fn encrypt(&mut self, session: rustls::Connection) -> io::Result<()> {
        match self.ask(&ClientOption::StartTls)?.last() {
            Some(Answer::Ack) => {}
            Some(Answer::Refused { reason, .. }) => {
                return Err(io::Error::new(
                    io::ErrorKind::PermissionDenied,
                    format!("the server does not encrypt: {reason}"),
                ));
            }
            Some(_) | None => return Err(broken("the server answered something else to TLS")),
        }
        // Anyone on the way could have put in what came behind this answer, to pass for encrypted.
        if !self.decoder.is_drained() {
            return Err(broken("the server went on before TLS had begun"));
        }
        self.line.encrypt(session).map_err(|error| {
            let why = foreign(&error.to_string());
            io::Error::new(error.kind(), format!("TLS does not come about: {why}"))
        })
    }

    fn receive(&mut self) -> io::Result<ServerMessage> {
        loop {
            // Nothing was read yet, so no reply to a read can come.
            if let Some(message) = self.decoder.next(&mut |_| None)? {
                return Ok(message);
            }
            match self.line.read(self.decoder.space())? {
                0 => {
                    let message = "the server closed the connection during the handshake";
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, message));
                }
                count => self.decoder.filled(count),
            }
        }
    }

    /// Sends an option and takes the answers up to the one that ends them.
    fn ask(&mut self, option: &ClientOption) -> io::Result<Vec<Answer>> {
        /// More than any server has to say about one export.
        const ANSWERS_MAX: usize = 64;
        let mut bytes = Vec::new();
        option.encode(&mut bytes);
        self.line.write(&bytes)?;
        let mut answers = Vec::new();
        loop {
            let ServerMessage::Answer { option: to, answer } = self.receive()? else {
                return Err(broken("the server sent something else than an answer"));
            };
            if to != option.number() {
                return Err(broken("the server answered an option that was not sent"));
            }
            let last = matches!(answer, Answer::Ack | Answer::Refused { .. });
            answers.push(match answer {
                Answer::Refused { refusal, reason } => {
                    Answer::Refused { refusal, reason: foreign(&reason) }
                }
                answer => answer,
            });
            if last {
                return Ok(answers);
            }
            if answers.len() == ANSWERS_MAX {
                return Err(broken("the server does not stop answering one option"));
            }
        }
    }
}

fn refused(refusal: Refusal, reason: &str, export: &str) -> io::Error {
    let kind = match refusal {
        Refusal::UnknownExport => io::ErrorKind::NotFound,
        Refusal::Policy | Refusal::TlsRequired => io::ErrorKind::PermissionDenied,
        Refusal::Unsupported
        | Refusal::Invalid
        | Refusal::Platform
        | Refusal::ShuttingDown
        | Refusal::BlockSizeRequired
        | Refusal::TooBig
        | Refusal::ExtendedHeadersRequired
        | Refusal::Other(_) => io::ErrorKind::ConnectionRefused,
    };
    io::Error::new(kind, format!("the server refused export '{export}' ({refusal:?}): {reason}"))
}

fn unsupported(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, message)
}

fn broken(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixListener;

    use super::*;
    use crate::client::Client;
    use crate::codec::{Cookie, ProtocolError};
    use crate::endpoint::Endpoint;

    fn export(flags: ExportFlags) -> Answer {
        Answer::Info(Info::Export { size: Bytes::new(1 << 20), flags })
    }

    fn sizes(min: u32, max: u32) -> Answer {
        Answer::Info(Info::BlockSize { min, preferred: 4096, max })
    }

    fn capable() -> ExportFlags {
        ExportFlags::HAS_FLAGS | ExportFlags::SEND_FLUSH | ExportFlags::SEND_FUA
    }

    #[test]
    fn payloads_keep_to_the_smaller_limit_in_whole_sectors() {
        for (max, expected) in [(u32::MAX, PAYLOAD_MAX), (100_000, 98_304)] {
            let answers = [export(capable()), sizes(512, max), Answer::Ack];
            assert_eq!(judge(&answers, "x").unwrap().payload_max, expected);
        }
        assert_eq!(judge(&[export(capable())], "x").unwrap().payload_max, PAYLOAD_MAX);
    }

    #[test]
    fn exports_that_cannot_be_a_block_service_are_refused_by_name() {
        let reason = "no".to_owned();
        for (answers, expected) in [
            (vec![Answer::Ack], "without its size"),
            (vec![export(ExportFlags::HAS_FLAGS)], "export 'x' cannot flush"),
            (vec![export(capable()), sizes(8192, 1 << 20)], "blocks of 8192 bytes"),
            (vec![export(capable()), sizes(1, 2048)], "less than 4096 bytes"),
            (vec![Answer::Refused { refusal: Refusal::UnknownExport, reason }], "export 'x'"),
        ] {
            let error = judge(&answers, "x").unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let read_only = ExportFlags::HAS_FLAGS | ExportFlags::READ_ONLY;
        assert!(judge(&[export(read_only)], "x").is_ok());
    }

    /// A server that takes one client, and then answers as it is told: bytes to read, bytes to write.
    fn scripted(script: Vec<(usize, Vec<u8>)>) -> (tempfile::TempDir, Endpoint) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("nbd.sock");
        let listener = UnixListener::bind(&path).unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            for (wanted, answer) in script {
                stream.read_exact(&mut vec![0; wanted]).unwrap();
                stream.write_all(&answer).unwrap();
            }
            // It stays until the client has gone.
            drop(stream.read(&mut [0]));
        });
        (dir, Endpoint::Unix(path))
    }

    fn greeting() -> (usize, Vec<u8>) {
        (0, [&b"NBDMAGICIHAVEOPT"[..], &[0, 1]].concat())
    }

    /// The answer of that kind to an option.
    fn answer(option: u32, kind: u32, data: &[u8]) -> Vec<u8> {
        let numbers = [option, kind, data.len() as u32].map(u32::to_be_bytes).concat();
        [&0x0003_e889_0455_65a9_u64.to_be_bytes()[..], &numbers, data].concat()
    }

    const NO_STRUCTURE: u32 = (1 << 31) + 1;
    const GO: usize = 16 + 4 + 2 + 2;

    #[test]
    fn what_a_server_refuses_with_is_one_clean_line_with_a_bound() {
        let hostile = format!("\x1b[31mPWNED\x1b]0;t\x07\nlevelhead: fake{}", "x".repeat(4000));
        let (_dir, endpoint) = scripted(vec![
            greeting(),
            (4 + 16, answer(8, NO_STRUCTURE, b"")),
            (GO, answer(7, (1 << 31) + 2, hostile.as_bytes())),
        ]);
        let error = Client::connect(&endpoint, "").err().unwrap().to_string();
        assert!(error.contains(r": \x1b[31mPWNED\x1b]0;t\x07\nlevelhead: fakexxx"), "{error}");
        assert!(!error.contains(char::is_control) && error.len() < 1000, "{error}");
    }

    #[test]
    fn why_a_connection_was_lost_is_told_to_whoever_waited() {
        let export = [&[0, 0][..], &(1_u64 << 20).to_be_bytes(), &13_u16.to_be_bytes()].concat();
        let accepted = [answer(7, 3, &export), answer(7, 1, b"")].concat();
        let nonsense =
            [&0x6744_6698_u32.to_be_bytes()[..], &[0; 4], &999_u64.to_be_bytes()].concat();
        let (_dir, endpoint) = scripted(vec![
            greeting(),
            (4 + 16, answer(8, NO_STRUCTURE, b"")),
            (GO, accepted),
            (28, nonsense),
        ]);
        let client = Client::connect(&endpoint, "").unwrap();
        let expected = ProtocolError::UnknownCookie(Cookie::new(999)).to_string();
        for _ in 0..2 {
            let error = client.read_at(Bytes::new(0), &mut [0; 512]).unwrap_err();
            assert_eq!(
                (error.kind(), error.to_string()),
                (io::ErrorKind::ConnectionAborted, expected.clone())
            );
        }
    }
}
