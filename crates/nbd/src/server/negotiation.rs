//! What a server answers before requests begin. Decides and nothing more; see
//! [`crate::codec`] for the bytes.
//!
//! ```text
//!   flags --> options --(GO or EXPORT_NAME of an export that exists)--> requests
//!                |
//!                +--(ABORT, or EXPORT_NAME of another)--> closed
//! ```
//!
//! A server that encrypts answers no other option before `STARTTLS` than `ABORT`: neither what exports there
//! are nor any of their bytes can be had without TLS.

use levelhead_units::{Bytes, SECTOR_SIZE};

use crate::codec::{
    Answer, ClientFlags, ClientMessage, ClientOption, ExportFlags, HandshakeFlags, Info,
    PAYLOAD_MAX, Padding, Refusal, ServerMessage, info, option,
};

/// The one kind of block status there is.
pub(super) const ALLOCATION: &str = "base:allocation";
/// What replies call it.
pub(super) const ALLOCATION_ID: u32 = 1;

/// The block size announced as the smallest: requests of any bytes are served.
const BLOCK_MIN: u32 = 1;

/// What clients are told about an export.
#[derive(Clone, Debug)]
pub(super) struct Described {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) size: Bytes,
    /// Without [`ExportFlags::SEND_DF`], which depends on the connection.
    pub(super) flags: ExportFlags,
}

/// How reads are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Replies {
    Simple,
    Structured,
}

/// Whether requests for block status are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    NotChosen,
    Chosen,
}

/// Whether what is said is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Privacy {
    /// It is not, and will not be.
    None,
    /// It is not yet, and has to be.
    Required,
    Encrypted,
}

/// What both sides agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Agreed {
    /// The export's place in the list.
    pub(super) export: usize,
    pub(super) replies: Replies,
    pub(super) status: Status,
}

/// What to do once the answers are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Continue,
    /// Begin TLS, then go on.
    Encrypt,
    Begin(Agreed),
    Close,
}

/// A handshake in progress.
pub(super) struct Negotiation<'a> {
    exports: &'a [Described],
    privacy: Privacy,
    padding: Padding,
    replies: Replies,
    /// The export whose block status the client chose.
    status_of: Option<usize>,
}

impl<'a> Negotiation<'a> {
    /// A handshake over `exports`; the first is the default one.
    pub(super) fn new(exports: &'a [Described], privacy: Privacy) -> Self {
        let (padding, replies) = (Padding::Zeroes, Replies::Simple);
        Self { exports, privacy, padding, replies, status_of: None }
    }

    /// TLS has begun.
    pub(super) fn handle_encrypted(&mut self) {
        assert_eq!(self.privacy, Privacy::Required, "it is agreed on once, by those who need it");
        self.privacy = Privacy::Encrypted;
    }

    /// What to say first.
    pub(super) fn greeting() -> ServerMessage {
        ServerMessage::Greeting(HandshakeFlags::FIXED_NEWSTYLE | HandshakeFlags::NO_ZEROES)
    }

    /// Takes a message and appends the answers to it.
    pub(super) fn handle(
        &mut self,
        message: ClientMessage,
        answers: &mut Vec<ServerMessage>,
    ) -> Step {
        match message {
            ClientMessage::Flags(flags) => {
                if flags.contains(ClientFlags::NO_ZEROES) {
                    self.padding = Padding::None;
                }
                Step::Continue
            }
            ClientMessage::Option(option) => {
                let mut answers = Answers { option: option.number(), messages: answers };
                match self.privacy {
                    Privacy::Required => unencrypted(&option, &mut answers),
                    Privacy::None | Privacy::Encrypted => self.answer(option, &mut answers),
                }
            }
            // There is no way to refuse this one.
            ClientMessage::BadOption { option: option::EXPORT_NAME, .. } => Step::Close,
            ClientMessage::BadOption { option, .. } if self.privacy == Privacy::Required => {
                answers.push(ServerMessage::Answer { option, answer: needs_tls() });
                Step::Continue
            }
            ClientMessage::BadOption { option, refusal, reason } => {
                answers.push(ServerMessage::Answer { option, answer: refused(refusal, reason) });
                Step::Continue
            }
            // The decoder was not told to expect any yet.
            ClientMessage::Announced(_) | ClientMessage::Request(..) => Step::Close,
        }
    }

    fn answer(&mut self, option: ClientOption, answers: &mut Answers<'_>) -> Step {
        match option {
            ClientOption::ExportName(name) => return self.begin(&name, answers.messages),
            ClientOption::Abort => {
                answers.say(Answer::Ack);
                return Step::Close;
            }
            ClientOption::List => {
                for Described { name, description, .. } in self.exports {
                    let (name, description) = (name.clone(), description.clone());
                    answers.say(Answer::Server { name, description });
                }
                answers.say(Answer::Ack);
            }
            ClientOption::StartTls => answers.say(match self.privacy {
                Privacy::Encrypted => refused(Refusal::Invalid, "TLS has begun already"),
                Privacy::None | Privacy::Required => {
                    refused(Refusal::Unsupported, "this server does not encrypt")
                }
            }),
            ClientOption::StructuredReply => {
                self.replies = Replies::Structured;
                answers.say(Answer::Ack);
            }
            ClientOption::Info { export, wanted } => {
                self.describe(&export, &wanted, answers);
            }
            ClientOption::Go { export, wanted } => {
                if let Some(export) = self.describe(&export, &wanted, answers) {
                    return Step::Begin(self.agreed(export));
                }
            }
            ClientOption::ListMetaContext { export, queries } => {
                let all = queries.is_empty();
                let listed = all || queries.iter().any(|q| q == ALLOCATION || q == "base:");
                self.contexts(&export, listed.then_some(0), answers);
            }
            ClientOption::SetMetaContext { export, queries } => {
                let chosen = queries.iter().any(|query| query == ALLOCATION);
                let found = self.contexts(&export, chosen.then_some(ALLOCATION_ID), answers);
                self.status_of = found.filter(|_| chosen);
            }
        }
        Step::Continue
    }

    /// Answers a question about the kinds of block status; the export, unless that was refused.
    fn contexts(&self, export: &str, id: Option<u32>, answers: &mut Answers<'_>) -> Option<usize> {
        if self.replies == Replies::Simple {
            answers.say(refused(Refusal::Invalid, "block status needs structured replies"));
            return None;
        }
        let found = self.find(export, answers)?;
        if let Some(id) = id {
            answers.say(Answer::MetaContext { id, name: ALLOCATION.to_owned() });
        }
        answers.say(Answer::Ack);
        Some(found)
    }

    /// Answers what an export is like; the export, unless there is none.
    fn describe(&self, export: &str, wanted: &[u16], answers: &mut Answers<'_>) -> Option<usize> {
        let found = self.find(export, answers)?;
        let Described { name, description, size, .. } = &self.exports[found];
        answers.say(Answer::Info(Info::Export { size: *size, flags: self.flags(found) }));
        if wanted.contains(&info::NAME) {
            answers.say(Answer::Info(Info::Name(name.clone())));
        }
        if wanted.contains(&info::DESCRIPTION) {
            answers.say(Answer::Info(Info::Description(description.clone())));
        }
        let (min, preferred, max) = (BLOCK_MIN, SECTOR_SIZE as u32, PAYLOAD_MAX);
        answers.say(Answer::Info(Info::BlockSize { min, preferred, max }));
        answers.say(Answer::Ack);
        Some(found)
    }

    fn begin(&self, name: &str, messages: &mut Vec<ServerMessage>) -> Step {
        // There is no way to refuse.
        let Some(found) = self.position(name) else { return Step::Close };
        let (size, flags) = (self.exports[found].size, self.flags(found));
        messages.push(ServerMessage::Export { size, flags, padding: self.padding });
        Step::Begin(self.agreed(found))
    }

    /// The export of that name. No name means the first export.
    fn position(&self, name: &str) -> Option<usize> {
        let named = self.exports.iter().position(|export| export.name == name);
        named.or(name.is_empty().then_some(0))
    }

    /// The export of that name, or a refusal.
    fn find(&self, name: &str, answers: &mut Answers<'_>) -> Option<usize> {
        let found = self.position(name);
        if found.is_none() {
            answers.say(refused(Refusal::UnknownExport, "no export has this name"));
        }
        found
    }

    fn flags(&self, export: usize) -> ExportFlags {
        let flags = self.exports[export].flags;
        match self.replies {
            Replies::Simple => flags,
            Replies::Structured => flags | ExportFlags::SEND_DF,
        }
    }

    fn agreed(&self, export: usize) -> Agreed {
        let chosen = self.status_of == Some(export);
        let status = if chosen { Status::Chosen } else { Status::NotChosen };
        Agreed { export, replies: self.replies, status }
    }
}

/// What a client gets in the place of these answers that cannot be served because too many are.
pub(super) fn turn_away(answers: &mut Vec<ServerMessage>) {
    // There is no way to refuse an EXPORT_NAME.
    let refusal = match answers.last() {
        Some(&ServerMessage::Answer { option, .. }) => {
            let reason = "the server has as many clients as it serves: try again later";
            Some(ServerMessage::Answer { option, answer: refused(Refusal::Policy, reason) })
        }
        Some(_) | None => None,
    };
    answers.clear();
    answers.extend(refusal);
}

/// What a client gets that has to begin TLS first.
fn unencrypted(option: &ClientOption, answers: &mut Answers<'_>) -> Step {
    match option {
        ClientOption::StartTls => {
            answers.say(Answer::Ack);
            Step::Encrypt
        }
        ClientOption::Abort => {
            answers.say(Answer::Ack);
            Step::Close
        }
        // There is no way to refuse this one.
        ClientOption::ExportName(_) => Step::Close,
        ClientOption::List
        | ClientOption::Info { .. }
        | ClientOption::Go { .. }
        | ClientOption::StructuredReply
        | ClientOption::ListMetaContext { .. }
        | ClientOption::SetMetaContext { .. } => {
            answers.say(needs_tls());
            Step::Continue
        }
    }
}

fn needs_tls() -> Answer {
    refused(Refusal::TlsRequired, "this server serves nothing without TLS: begin it first")
}

/// The answers to one option.
struct Answers<'a> {
    option: u32,
    messages: &'a mut Vec<ServerMessage>,
}

impl Answers<'_> {
    fn say(&mut self, answer: Answer) {
        self.messages.push(ServerMessage::Answer { option: self.option, answer });
    }
}

fn refused(refusal: Refusal, reason: &str) -> Answer {
    Answer::Refused { refusal, reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exports() -> Vec<Described> {
        let export = |name: &str| Described {
            name: name.to_owned(),
            description: format!("about {name}"),
            size: Bytes::new(1 << 20),
            flags: ExportFlags::HAS_FLAGS,
        };
        vec![export("a"), export("b")]
    }

    fn ask(negotiation: &mut Negotiation<'_>, option: ClientOption) -> (Vec<Answer>, Step) {
        let mut messages = Vec::new();
        let step = negotiation.handle(ClientMessage::Option(option), &mut messages);
        let answer = |message| match message {
            ServerMessage::Answer { answer, .. } => answer,
            other => panic!("{other:?} is not an answer to an option"),
        };
        (messages.into_iter().map(answer).collect(), step)
    }

    fn go(export: &str) -> ClientOption {
        ClientOption::Go { export: export.to_owned(), wanted: Vec::new() }
    }

    fn choose(export: &str, query: &str) -> ClientOption {
        let queries = vec![query.to_owned()];
        ClientOption::SetMetaContext { export: export.to_owned(), queries }
    }

    fn is_refused(answers: &[Answer], with: Refusal) -> bool {
        matches!(answers, [Answer::Refused { refusal, .. }] if *refusal == with)
    }

    #[test]
    fn go_describes_the_export_and_begins() {
        let exports = exports();
        let mut negotiation = Negotiation::new(&exports, Privacy::None);
        let wanted = vec![info::NAME, info::DESCRIPTION];
        let option = ClientOption::Go { export: String::new(), wanted };
        let (answers, step) = ask(&mut negotiation, option);
        let block_size = Info::BlockSize { min: 1, preferred: 4096, max: 32 << 20 };
        let size = Bytes::new(1 << 20);
        let facts = [
            Info::Export { size, flags: ExportFlags::HAS_FLAGS },
            Info::Name("a".to_owned()),
            Info::Description("about a".to_owned()),
            block_size,
        ];
        let expected: Vec<Answer> =
            facts.into_iter().map(Answer::Info).chain([Answer::Ack]).collect();
        assert_eq!(answers, expected);
        let (replies, status) = (Replies::Simple, Status::NotChosen);
        assert_eq!(step, Step::Begin(Agreed { export: 0, replies, status }));
    }

    #[test]
    fn unknown_export_is_refused_and_the_handshake_goes_on() {
        let exports = exports();
        let mut negotiation = Negotiation::new(&exports, Privacy::None);
        let (answers, step) = ask(&mut negotiation, go("c"));
        assert!(is_refused(&answers, Refusal::UnknownExport), "{answers:?}");
        assert_eq!(step, Step::Continue);
    }

    #[test]
    fn info_describes_and_does_not_begin() {
        let exports = exports();
        let mut negotiation = Negotiation::new(&exports, Privacy::None);
        let option = ClientOption::Info { export: "b".to_owned(), wanted: Vec::new() };
        let (answers, step) = ask(&mut negotiation, option);
        assert_eq!(answers.len(), 3);
        assert_eq!(step, Step::Continue);
    }

    #[test]
    fn export_name_of_nothing_closes_because_it_cannot_be_refused() {
        let exports = exports();
        let mut negotiation = Negotiation::new(&exports, Privacy::None);
        let mut answers = Vec::new();
        let ask = ClientMessage::Option(ClientOption::ExportName("c".to_owned()));
        assert_eq!(negotiation.handle(ask, &mut answers), Step::Close);
        let refusal = Refusal::Invalid;
        let bad = ClientMessage::BadOption { option: option::EXPORT_NAME, refusal, reason: "" };
        assert_eq!(negotiation.handle(bad, &mut answers), Step::Close);
        assert_eq!(answers, []);
    }

    #[test]
    fn export_name_pads_only_for_clients_that_wait_for_it() {
        let exports = exports();
        for (flags, expected) in
            [(ClientFlags::NONE, Padding::Zeroes), (ClientFlags::NO_ZEROES, Padding::None)]
        {
            let mut negotiation = Negotiation::new(&exports, Privacy::None);
            let mut answers = Vec::new();
            negotiation.handle(ClientMessage::Flags(flags), &mut answers);
            let name = ClientMessage::Option(ClientOption::ExportName("b".to_owned()));
            assert!(matches!(negotiation.handle(name, &mut answers), Step::Begin(_)));
            let [ServerMessage::Export { padding, .. }] = answers[..] else { panic!() };
            assert_eq!(padding, expected);
        }
    }

    #[test]
    fn list_names_every_export() {
        let exports = exports();
        let (answers, _) = ask(&mut Negotiation::new(&exports, Privacy::None), ClientOption::List);
        assert_eq!(answers.len(), 3);
        let (name, description) = ("b".to_owned(), "about b".to_owned());
        assert_eq!(answers[1..], [Answer::Server { name, description }, Answer::Ack]);
    }

    #[test]
    fn encryption_and_unknown_options_are_refused_and_the_handshake_goes_on() {
        let exports = exports();
        let mut negotiation = Negotiation::new(&exports, Privacy::None);
        let (answers, step) = ask(&mut negotiation, ClientOption::StartTls);
        assert!(is_refused(&answers, Refusal::Unsupported), "{answers:?}");
        assert_eq!(step, Step::Continue);
        let refusal = Refusal::Unsupported;
        let option = option::EXTENDED_HEADERS;
        let bad = ClientMessage::BadOption { option, refusal, reason: "no" };
        let mut messages = Vec::new();
        assert_eq!(negotiation.handle(bad, &mut messages), Step::Continue);
        let answer = Answer::Refused { refusal, reason: "no".to_owned() };
        assert_eq!(messages, [ServerMessage::Answer { option, answer }]);
    }

    #[test]
    fn block_status_needs_structured_replies_and_the_same_export() {
        let exports = exports();
        let mut negotiation = Negotiation::new(&exports, Privacy::None);
        let (answers, _) = ask(&mut negotiation, choose("a", ALLOCATION));
        assert!(is_refused(&answers, Refusal::Invalid), "{answers:?}");
        ask(&mut negotiation, ClientOption::StructuredReply);
        let (answers, _) = ask(&mut negotiation, choose("a", ALLOCATION));
        let context = Answer::MetaContext { id: ALLOCATION_ID, name: ALLOCATION.to_owned() };
        assert_eq!(answers, [context, Answer::Ack]);
        let replies = Replies::Structured;
        for (export, name, status) in [(0, "a", Status::Chosen), (1, "b", Status::NotChosen)] {
            let (_, step) = ask(&mut negotiation, go(name));
            assert_eq!(step, Step::Begin(Agreed { export, replies, status }));
        }
        let (answers, _) = ask(&mut negotiation, choose("a", "qemu:dirty-bitmap:x"));
        assert_eq!(answers, [Answer::Ack]);
        let (_, step) = ask(&mut negotiation, go(""));
        let status = Status::NotChosen;
        assert_eq!(step, Step::Begin(Agreed { export: 0, replies, status }));
    }

    #[test]
    fn server_that_encrypts_says_nothing_before_and_everything_after_tls() {
        let exports = exports();
        let mut negotiation = Negotiation::new(&exports, Privacy::Required);
        let (export, queries) = ("a".to_owned(), Vec::new());
        for option in [
            go("a"),
            ClientOption::List,
            ClientOption::StructuredReply,
            ClientOption::Info { export: export.clone(), wanted: Vec::new() },
            ClientOption::ListMetaContext { export: export.clone(), queries: queries.clone() },
            ClientOption::SetMetaContext { export: export.clone(), queries },
        ] {
            let (answers, step) = ask(&mut negotiation, option.clone());
            assert!(is_refused(&answers, Refusal::TlsRequired), "{option:?}: {answers:?}");
            assert_eq!(step, Step::Continue);
        }
        let bad = |option, refusal| ClientMessage::BadOption { option, refusal, reason: "no" };
        let mut messages = Vec::new();
        let unknown = bad(option::EXTENDED_HEADERS, Refusal::Unsupported);
        assert_eq!(negotiation.handle(unknown, &mut messages), Step::Continue);
        let expected =
            ServerMessage::Answer { option: option::EXTENDED_HEADERS, answer: needs_tls() };
        assert_eq!(messages, [expected]);
        assert_eq!(ask(&mut negotiation, ClientOption::ExportName(export)), (vec![], Step::Close));
        let (answers, step) = ask(&mut negotiation, ClientOption::StartTls);
        assert_eq!((answers, step), (vec![Answer::Ack], Step::Encrypt));
        negotiation.handle_encrypted();
        let (answers, _) = ask(&mut negotiation, ClientOption::StartTls);
        assert!(is_refused(&answers, Refusal::Invalid), "{answers:?}");
        let (_, step) = ask(&mut negotiation, go("a"));
        // What was asked for before TLS is not agreed on.
        let (replies, status) = (Replies::Simple, Status::NotChosen);
        assert_eq!(step, Step::Begin(Agreed { export: 0, replies, status }));
    }

    #[test]
    fn abort_is_acknowledged_and_closes() {
        let exports = exports();
        let answer = ask(&mut Negotiation::new(&exports, Privacy::None), ClientOption::Abort);
        assert_eq!(answer, (vec![Answer::Ack], Step::Close));
    }
}
