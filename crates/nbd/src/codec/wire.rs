//! The protocol's numbers: magics, flags, options, commands, errors. All integers on the wire are
//! big-endian.

use std::fmt;
use std::ops::BitOr;

/// First word of a server: `NBDMAGIC`.
pub(super) const SERVER_MAGIC: u64 = u64::from_be_bytes(*b"NBDMAGIC");
/// Second word of a server and first word of every option: `IHAVEOPT`.
pub(super) const OPTION_MAGIC: u64 = u64::from_be_bytes(*b"IHAVEOPT");
/// First word of every reply to an option.
pub(super) const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// First word of every transmission request.
pub(super) const REQUEST_MAGIC: u32 = 0x2560_9513;
/// First word of a simple reply.
pub(super) const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// First word of a chunk of a structured reply.
pub(super) const CHUNK_MAGIC: u32 = 0x668e_33ef;

macro_rules! flags {
    ($(#[$doc:meta])* $name:ident: $int:ty { $($(#[$bit_doc:meta])* $bit:ident = $value:expr,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name($int);

        impl $name {
            /// No flag.
            pub const NONE: Self = Self(0);
            $($(#[$bit_doc])* pub const $bit: Self = Self(1 << $value);)*
            /// Every flag with a name.
            pub const KNOWN: Self = Self(0 $(| 1 << $value)*);

            /// The flags that are set in `bits`.
            pub const fn from_bits(bits: $int) -> Self {
                Self(bits)
            }

            /// The flags as they are on the wire.
            pub const fn bits(self) -> $int {
                self.0
            }

            /// Whether every flag of `other` is set.
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            /// The flags that are not in `other`.
            #[must_use]
            pub const fn without(self, other: Self) -> Self {
                Self(self.0 & !other.0)
            }
        }

        impl BitOr for $name {
            type Output = Self;
            fn bitor(self, rhs: Self) -> Self {
                Self(self.0 | rhs.0)
            }
        }
    };
}

flags! {
    /// What a server can do in the handshake.
    HandshakeFlags: u16 {
        /// It answers options (`NBD_FLAG_FIXED_NEWSTYLE`).
        FIXED_NEWSTYLE = 0,
        /// It can leave out the zeroes after an export's description (`NBD_FLAG_NO_ZEROES`).
        NO_ZEROES = 1,
    }
}

flags! {
    /// What a client chooses from [`HandshakeFlags`].
    ClientFlags: u32 {
        /// It sends options (`NBD_FLAG_C_FIXED_NEWSTYLE`).
        FIXED_NEWSTYLE = 0,
        /// It wants no zeroes after an export's description (`NBD_FLAG_C_NO_ZEROES`).
        NO_ZEROES = 1,
    }
}

flags! {
    /// What an export can do (transmission flags).
    ExportFlags: u16 {
        /// Always set.
        HAS_FLAGS = 0,
        /// It refuses writes.
        READ_ONLY = 1,
        /// It takes [`CommandKind::Flush`].
        SEND_FLUSH = 2,
        /// It takes [`CommandFlags::FUA`].
        SEND_FUA = 3,
        /// It is on a rotating medium.
        ROTATIONAL = 4,
        /// It takes [`CommandKind::Trim`].
        SEND_TRIM = 5,
        /// It takes [`CommandKind::WriteZeroes`].
        SEND_WRITE_ZEROES = 6,
        /// It takes [`CommandFlags::DF`].
        SEND_DF = 7,
        /// A flush on one connection covers writes answered on all of them.
        CAN_MULTI_CONN = 8,
        /// It takes resizes (never set by this server).
        SEND_RESIZE = 9,
        /// It takes [`CommandKind::Cache`].
        SEND_CACHE = 10,
        /// It takes [`CommandFlags::FAST_ZERO`].
        SEND_FAST_ZERO = 11,
    }
}

flags! {
    /// How a command is to be done.
    CommandFlags: u16 {
        /// Answer when it is on the medium.
        FUA = 0,
        /// Zeroes must stay allocated.
        NO_HOLE = 1,
        /// Send what was read in one chunk.
        DF = 2,
        /// Describe one run only.
        REQ_ONE = 3,
        /// Fail at once if writing zeroes is no faster than writing anything else.
        FAST_ZERO = 4,
        /// The payload's length is stated (extended headers only).
        PAYLOAD_LEN = 5,
    }
}

/// What a transmission request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandKind {
    /// Fetch bytes.
    Read,
    /// Store bytes.
    Write,
    /// Say goodbye. Not answered.
    Disconnect,
    /// Put answered writes on the medium.
    Flush,
    /// The bytes are no longer needed.
    Trim,
    /// The bytes will be read soon.
    Cache,
    /// Store zeroes.
    WriteZeroes,
    /// Describe what is allocated.
    BlockStatus,
    /// A number this codec gives no meaning to.
    Unknown(u16),
}

impl CommandKind {
    pub(super) const fn from_wire(number: u16) -> Self {
        match number {
            0 => Self::Read,
            1 => Self::Write,
            2 => Self::Disconnect,
            3 => Self::Flush,
            4 => Self::Trim,
            5 => Self::Cache,
            6 => Self::WriteZeroes,
            7 => Self::BlockStatus,
            other => Self::Unknown(other),
        }
    }

    pub(super) const fn to_wire(self) -> u16 {
        match self {
            Self::Read => 0,
            Self::Write => 1,
            Self::Disconnect => 2,
            Self::Flush => 3,
            Self::Trim => 4,
            Self::Cache => 5,
            Self::WriteZeroes => 6,
            Self::BlockStatus => 7,
            Self::Unknown(number) => number,
        }
    }
}

/// Numbers of the options.
pub mod option {
    /// Choose an export and begin, without a way to refuse.
    pub const EXPORT_NAME: u32 = 1;
    /// Give up.
    pub const ABORT: u32 = 2;
    /// Name the exports.
    pub const LIST: u32 = 3;
    /// Encrypt.
    pub const STARTTLS: u32 = 5;
    /// Describe an export.
    pub const INFO: u32 = 6;
    /// Describe an export and begin.
    pub const GO: u32 = 7;
    /// Answer reads in chunks.
    pub const STRUCTURED_REPLY: u32 = 8;
    /// Name the kinds of block status.
    pub const LIST_META_CONTEXT: u32 = 9;
    /// Choose kinds of block status.
    pub const SET_META_CONTEXT: u32 = 10;
    /// 64-bit lengths.
    pub const EXTENDED_HEADERS: u32 = 11;
}

/// Numbers of the replies to options; refusals are in [`Refusal`].
pub(super) mod reply {
    pub(crate) const ACK: u32 = 1;
    pub(crate) const SERVER: u32 = 2;
    pub(crate) const INFO: u32 = 3;
    pub(crate) const META_CONTEXT: u32 = 4;
    pub(crate) const REFUSAL_BIT: u32 = 1 << 31;
}

/// Numbers of the facts in an information reply.
pub mod info {
    /// Size and flags.
    pub const EXPORT: u16 = 0;
    /// The export's own name.
    pub const NAME: u16 = 1;
    /// A text for people.
    pub const DESCRIPTION: u16 = 2;
    /// Limits of a request's size.
    pub const BLOCK_SIZE: u16 = 3;
}

/// Numbers of the kinds of chunk.
pub(super) mod chunk {
    pub(crate) const DONE: u16 = 1;
    pub(crate) const NONE: u16 = 0;
    pub(crate) const OFFSET_DATA: u16 = 1;
    pub(crate) const OFFSET_HOLE: u16 = 2;
    pub(crate) const BLOCK_STATUS: u16 = 5;
    pub(crate) const ERROR_BIT: u16 = 1 << 15;
    pub(crate) const ERROR: u16 = ERROR_BIT + 1;
    pub(crate) const ERROR_OFFSET: u16 = ERROR_BIT + 2;
}

/// Why a server refuses an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It does not know the option.
    Unsupported,
    /// It does not want to.
    Policy,
    /// The option's data make no sense, or it comes at the wrong time.
    Invalid,
    /// Its machine cannot.
    Platform,
    /// Encrypt first.
    TlsRequired,
    /// There is no such export.
    UnknownExport,
    /// It is about to end.
    ShuttingDown,
    /// Ask for the block size first.
    BlockSizeRequired,
    /// The option is too long.
    TooBig,
    /// Agree on extended headers first.
    ExtendedHeadersRequired,
    /// A number this codec gives no meaning to, without the high bit.
    Other(u32),
}

impl Refusal {
    pub(super) const fn from_wire(number: u32) -> Self {
        match number & !reply::REFUSAL_BIT {
            1 => Self::Unsupported,
            2 => Self::Policy,
            3 => Self::Invalid,
            4 => Self::Platform,
            5 => Self::TlsRequired,
            6 => Self::UnknownExport,
            7 => Self::ShuttingDown,
            8 => Self::BlockSizeRequired,
            9 => Self::TooBig,
            10 => Self::ExtendedHeadersRequired,
            other => Self::Other(other),
        }
    }

    pub(super) const fn to_wire(self) -> u32 {
        let number = match self {
            Self::Unsupported => 1,
            Self::Policy => 2,
            Self::Invalid => 3,
            Self::Platform => 4,
            Self::TlsRequired => 5,
            Self::UnknownExport => 6,
            Self::ShuttingDown => 7,
            Self::BlockSizeRequired => 8,
            Self::TooBig => 9,
            Self::ExtendedHeadersRequired => 10,
            Self::Other(number) => number,
        };
        reply::REFUSAL_BIT | number
    }
}

/// Why a command failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errno {
    /// The export is read-only.
    NotPermitted,
    /// The medium failed.
    Io,
    /// The server has no memory left.
    NoMemory,
    /// The request makes no sense.
    Invalid,
    /// The write lies past the end, or the server has no space left.
    NoSpace,
    /// The request is too long.
    Overflow,
    /// The server cannot do this, or not as fast as it was asked to.
    NotSupported,
    /// The server is about to end.
    ShuttingDown,
}

impl Errno {
    /// The number, the same as Linux has for it.
    pub const fn to_wire(self) -> u32 {
        match self {
            Self::NotPermitted => 1,
            Self::Io => 5,
            Self::NoMemory => 12,
            Self::Invalid => 22,
            Self::NoSpace => 28,
            Self::Overflow => 75,
            Self::NotSupported => 95,
            Self::ShuttingDown => 108,
        }
    }

    /// The error for a number that is not zero; unknown ones count as [`Errno::Invalid`], as the
    /// protocol asks.
    pub(super) const fn from_wire(number: u32) -> Self {
        match number {
            1 => Self::NotPermitted,
            5 => Self::Io,
            12 => Self::NoMemory,
            28 => Self::NoSpace,
            75 => Self::Overflow,
            95 => Self::NotSupported,
            108 => Self::ShuttingDown,
            _ => Self::Invalid,
        }
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotPermitted => "EPERM (the export is read-only)",
            Self::Io => "EIO (the medium failed)",
            Self::NoMemory => "ENOMEM (the server has no memory left)",
            Self::Invalid => "EINVAL (the request makes no sense)",
            Self::NoSpace => "ENOSPC (the write lies past the end)",
            Self::Overflow => "EOVERFLOW (the request is too long)",
            Self::NotSupported => "ENOTSUP (the server cannot do this)",
            Self::ShuttingDown => "ESHUTDOWN (the server is about to end)",
        })
    }
}

/// What a client calls one of its requests. The server gives it back with the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cookie(u64);

impl Cookie {
    /// The cookie with this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Its number.
    pub const fn get(self) -> u64 {
        self.0
    }
}
