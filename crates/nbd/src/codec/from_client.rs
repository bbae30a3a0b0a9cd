//! What a client says, and how a server takes it apart.

use levelhead_block::Pool;
use levelhead_units::Sectors;

use super::input::{Fields, Input, PutFields, length};
use super::wire::{OPTION_MAGIC, REQUEST_MAGIC, option};
use super::{
    Body, ClientFlags, CommandFlags, CommandKind, Cookie, OPTION_MAX, OPTION_SKIP_MAX, PAYLOAD_MAX,
    PAYLOAD_SKIP_MAX, Payload, ProtocolError, Refusal,
};

/// One message of a client, as a server sees it.
#[derive(Debug, PartialEq)]
pub enum ClientMessage {
    /// What it chooses from the server's greeting. Always the first.
    Flags(ClientFlags),
    /// An option.
    Option(ClientOption),
    /// An option that this codec cannot hand over, and what to tell the client.
    BadOption {
        /// Its number.
        option: u32,
        /// The kind of refusal.
        refusal: Refusal,
        /// The reason, as a text for people.
        reason: &'static str,
    },
    /// The head of a write of at most [`PAYLOAD_MAX`] bytes, before there is memory for its bytes:
    /// that is made when the decoder is asked for the next message. The request itself follows once
    /// its bytes are there.
    Announced(RequestHeader),
    /// A transmission request.
    Request(RequestHeader, Body),
}

/// An option. Its number is in [`option`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientOption {
    /// Choose an export and begin, without a way to refuse.
    ExportName(String),
    /// Give up.
    Abort,
    /// Name the exports.
    List,
    /// Encrypt.
    StartTls,
    /// Describe an export.
    Info {
        /// The name of the export; the empty name is the default export.
        export: String,
        /// Numbers of the facts wanted, from [`super::info`].
        wanted: Vec<u16>,
    },
    /// Describe an export and begin.
    Go {
        /// The name of the export; the empty name is the default export.
        export: String,
        /// Numbers of the facts wanted, from [`super::info`].
        wanted: Vec<u16>,
    },
    /// Answer reads in chunks.
    StructuredReply,
    /// Name the kinds of block status.
    ListMetaContext {
        /// The name of the export.
        export: String,
        /// The kinds wanted; all if empty.
        queries: Vec<String>,
    },
    /// Choose kinds of block status.
    SetMetaContext {
        /// The name of the export.
        export: String,
        /// The kinds chosen; none if empty.
        queries: Vec<String>,
    },
}

/// The head of a transmission request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHeader {
    /// How the command is to be done.
    pub flags: CommandFlags,
    /// What the request asks for.
    pub kind: CommandKind,
    /// Its name.
    pub cookie: Cookie,
    /// The first byte it is about.
    pub offset: u64,
    /// How many bytes it is about.
    pub length: u32,
}

/// Appends a client's first message.
pub fn encode_flags(flags: ClientFlags, out: &mut Vec<u8>) {
    out.put_u32(flags.bits());
}

impl RequestHeader {
    /// Bytes of a request's head.
    pub const LEN: usize = 28;

    /// Appends the head. The bytes of a write follow it.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u32(REQUEST_MAGIC);
        out.put_u16(self.flags.bits());
        out.put_u16(self.kind.to_wire());
        out.put_u64(self.cookie.get());
        out.put_u64(self.offset);
        out.put_u32(self.length);
    }

    fn parse(fields: &mut Fields<'_>) -> Option<Self> {
        Some(Self {
            flags: CommandFlags::from_bits(fields.u16()?),
            kind: CommandKind::from_wire(fields.u16()?),
            cookie: Cookie::new(fields.u64()?),
            offset: fields.u64()?,
            length: fields.u32()?,
        })
    }
}

impl ClientOption {
    /// Its number.
    pub fn number(&self) -> u32 {
        match self {
            Self::ExportName(_) => option::EXPORT_NAME,
            Self::Abort => option::ABORT,
            Self::List => option::LIST,
            Self::StartTls => option::STARTTLS,
            Self::Info { .. } => option::INFO,
            Self::Go { .. } => option::GO,
            Self::StructuredReply => option::STRUCTURED_REPLY,
            Self::ListMetaContext { .. } => option::LIST_META_CONTEXT,
            Self::SetMetaContext { .. } => option::SET_META_CONTEXT,
        }
    }

    /// Appends the option.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut data = Vec::new();
        match self {
            Self::ExportName(name) => data.extend_from_slice(name.as_bytes()),
            Self::Abort | Self::List | Self::StartTls | Self::StructuredReply => {}
            Self::Info { export, wanted } | Self::Go { export, wanted } => {
                data.put_counted(export);
                data.put_u16(u16::try_from(wanted.len()).expect("there are few kinds of facts"));
                wanted.iter().for_each(|&fact| data.put_u16(fact));
            }
            Self::ListMetaContext { export, queries }
            | Self::SetMetaContext { export, queries } => {
                data.put_counted(export);
                data.put_u32(length(queries.len()));
                queries.iter().for_each(|query| data.put_counted(query));
            }
        }
        out.put_u64(OPTION_MAGIC);
        out.put_u32(self.number());
        out.put_u32(length(data.len()));
        out.extend_from_slice(&data);
    }
}

/// Takes a client's bytes apart. See the [module](super) on how to drive it.
pub struct ServerDecoder {
    input: Input,
    stage: Stage,
    /// Where the bytes of writes get their memory.
    pool: Pool,
}

enum Stage {
    Flags,
    Options,
    /// An option that is too long is being thrown away.
    LongOption {
        option: u32,
    },
    Requests,
    /// A request's bytes will come; there is no memory for them yet.
    Announced {
        header: RequestHeader,
    },
    /// A request's bytes are on their way.
    Body {
        header: RequestHeader,
    },
}

impl Default for ServerDecoder {
    fn default() -> Self {
        Self::new()
    }
}

impl ServerDecoder {
    /// A decoder for a new connection, on which the client may choose every flag that
    /// [`ClientFlags`] names.
    pub fn new() -> Self {
        Self::with_pool(Pool::new(Sectors::ZERO))
    }

    /// The same; the bytes of writes get their memory from `pool`.
    pub fn with_pool(pool: Pool) -> Self {
        Self { input: Input::new(), stage: Stage::Flags, pool }
    }

    /// Where the next bytes from the socket go. Not empty once [`ServerDecoder::next`] gave nothing.
    pub fn space(&mut self) -> &mut [u8] {
        self.input.space()
    }

    /// The first `count` bytes of the space have been filled.
    ///
    /// Panics if that is more than there was.
    pub fn filled(&mut self, count: usize) {
        self.input.filled(count);
    }

    /// Whether it holds no byte that is not part of a message it has given: before TLS begins there must be
    /// none, because that would count as encrypted.
    pub fn is_drained(&self) -> bool {
        self.input.is_empty()
    }

    /// Copies as many of `bytes` as there is space for; how many that was.
    pub fn feed(&mut self, bytes: &[u8]) -> usize {
        self.input.feed(bytes)
    }

    /// The server accepted an export: requests follow.
    ///
    /// Panics unless options were expected.
    pub fn begin_transmission(&mut self) {
        assert!(matches!(self.stage, Stage::Options));
        self.stage = Stage::Requests;
    }

    /// The next message, if all its bytes are there.
    #[expect(clippy::should_implement_trait, reason = "nothing now does not mean nothing later")]
    pub fn next(&mut self) -> Result<Option<ClientMessage>, ProtocolError> {
        match self.stage {
            Stage::Flags => self.next_flags(),
            Stage::Options => self.next_option(),
            Stage::LongOption { option } => Ok(self.input.take_body().map(|_| {
                self.stage = Stage::Options;
                let reason = "the option's data are too long";
                ClientMessage::BadOption { option, refusal: Refusal::TooBig, reason }
            })),
            Stage::Requests => self.next_request(),
            Stage::Announced { header } => {
                let len = header.length as usize;
                self.input.begin_payload(Payload::room_in(&self.pool, header.offset, len));
                self.stage = Stage::Body { header };
                self.next()
            }
            Stage::Body { header } => Ok(self.input.take_body().map(|body| {
                self.stage = Stage::Requests;
                ClientMessage::Request(header, body)
            })),
        }
    }

    fn next_flags(&mut self) -> Result<Option<ClientMessage>, ProtocolError> {
        let Some(bits) = self.input.peek(4).and_then(|bytes| Fields(bytes).u32()) else {
            return Ok(None);
        };
        let flags = ClientFlags::from_bits(bits);
        if flags.without(ClientFlags::KNOWN) != ClientFlags::NONE {
            return Err(ProtocolError::ClientFlags(bits));
        }
        self.input.consume(4);
        self.stage = Stage::Options;
        Ok(Some(ClientMessage::Flags(flags)))
    }

    fn next_option(&mut self) -> Result<Option<ClientMessage>, ProtocolError> {
        const HEAD: usize = 16;
        let Some(head) = self.input.peek(HEAD) else { return Ok(None) };
        let mut fields = Fields(head);
        let (Some(magic), Some(option), Some(length)) = (fields.u64(), fields.u32(), fields.u32())
        else {
            return Ok(None);
        };
        if magic != OPTION_MAGIC {
            return Err(ProtocolError::Magic { expected: "an option", got: magic });
        }
        if length > OPTION_SKIP_MAX {
            return Err(ProtocolError::OptionLength(length));
        }
        if length > OPTION_MAX {
            self.input.consume(HEAD);
            self.input.begin_skip(length as usize);
            self.stage = Stage::LongOption { option };
            return self.next();
        }
        let whole = HEAD + length as usize;
        let Some(bytes) = self.input.peek(whole) else { return Ok(None) };
        let message = parse_option(option, &bytes[HEAD..]);
        self.input.consume(whole);
        Ok(Some(message))
    }

    fn next_request(&mut self) -> Result<Option<ClientMessage>, ProtocolError> {
        let Some(head) = self.input.peek(RequestHeader::LEN) else { return Ok(None) };
        let mut fields = Fields(head);
        let Some(magic) = fields.u32() else { return Ok(None) };
        if magic != REQUEST_MAGIC {
            return Err(ProtocolError::Magic { expected: "a request", got: magic.into() });
        }
        let Some(header) = RequestHeader::parse(&mut fields) else { return Ok(None) };
        let len = if header.kind == CommandKind::Write { header.length } else { 0 };
        if len > PAYLOAD_SKIP_MAX {
            return Err(ProtocolError::PayloadLength(len));
        }
        self.input.consume(RequestHeader::LEN);
        if len == 0 {
            return Ok(Some(ClientMessage::Request(header, Body::Nothing)));
        }
        if len <= PAYLOAD_MAX {
            self.stage = Stage::Announced { header };
            return Ok(Some(ClientMessage::Announced(header)));
        }
        self.input.begin_skip(len as usize);
        self.stage = Stage::Body { header };
        self.next()
    }
}

fn parse_option(number: u32, data: &[u8]) -> ClientMessage {
    let mut fields = Fields(data);
    let parsed = match number {
        option::EXPORT_NAME => fields.rest_text().map(ClientOption::ExportName),
        // Whatever comes with it, the client is leaving.
        option::ABORT => Some(ClientOption::Abort),
        option::LIST => fields.end(ClientOption::List),
        option::STARTTLS => fields.end(ClientOption::StartTls),
        option::STRUCTURED_REPLY => fields.end(ClientOption::StructuredReply),
        option::INFO => {
            parse_info(&mut fields).map(|(export, wanted)| ClientOption::Info { export, wanted })
        }
        option::GO => {
            parse_info(&mut fields).map(|(export, wanted)| ClientOption::Go { export, wanted })
        }
        option::LIST_META_CONTEXT => parse_queries(&mut fields)
            .map(|(export, queries)| ClientOption::ListMetaContext { export, queries }),
        option::SET_META_CONTEXT => parse_queries(&mut fields)
            .map(|(export, queries)| ClientOption::SetMetaContext { export, queries }),
        _ => {
            let (refusal, reason) = (Refusal::Unsupported, "this server does not know the option");
            return ClientMessage::BadOption { option: number, refusal, reason };
        }
    };
    let (refusal, reason) = (Refusal::Invalid, "the option's data make no sense");
    parsed
        .map_or(ClientMessage::BadOption { option: number, refusal, reason }, ClientMessage::Option)
}

fn parse_info(fields: &mut Fields<'_>) -> Option<(String, Vec<u16>)> {
    let export = fields.counted_text()?;
    let count = fields.u16()?;
    let wanted = (0..count).map(|_| fields.u16()).collect::<Option<Vec<u16>>>()?;
    fields.end((export, wanted))
}

fn parse_queries(fields: &mut Fields<'_>) -> Option<(String, Vec<String>)> {
    let export = fields.counted_text()?;
    let count = fields.u32()?;
    // Collecting stops at the first query that is not there, however many were announced.
    let queries = (0..count).map(|_| fields.counted_text()).collect::<Option<Vec<String>>>()?;
    fields.end((export, queries))
}
