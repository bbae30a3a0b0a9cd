//! What one request means for a service of whole sectors, or why it is refused.
//!
//! Reads are widened to the sectors they touch; what changes sectors becomes a [`Change`]. Errors are
//! those that other servers give, so that clients find what they expect.

use levelhead_block::Durability;
use levelhead_units::{Bytes, Extent, SECTOR_SIZE};

use super::Access;
use super::change::{Change, covering};
use super::failure::Failure;
use super::negotiation::{Agreed, Replies, Status};
use super::turns::{Bare, Deed};
use crate::codec::{Body, CommandFlags, CommandKind, Errno, PAYLOAD_MAX, RequestHeader};

const SECTOR: u64 = SECTOR_SIZE as u64;

/// What to do about a request.
#[derive(Debug)]
pub(super) enum Task {
    /// Fetch `extent`; what was asked for is the `len` bytes from byte `skew` on.
    Read {
        extent: Extent,
        skew: usize,
        len: usize,
    },
    Flush,
    Change(Change),
    /// A change that brings no bytes.
    Bare(Bare),
    /// Say that `length` bytes are allocated.
    Status {
        length: u32,
    },
    /// It is a hint that is not taken.
    Nothing,
    Disconnect,
}

/// What a request may do here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) size: Bytes,
    pub(super) access: Access,
    pub(super) agreed: Agreed,
}

/// What to do about `header` and what came with it, or why nothing will be done.
pub(super) fn task(header: &RequestHeader, body: Body, rules: &Rules) -> Result<Task, Failure> {
    check_flags(header, rules)?;
    let durability = match header.flags.contains(CommandFlags::FUA) {
        true => Durability::Durable,
        false => Durability::Cached,
    };
    let bytes = || {
        let start = header.offset;
        start..start + u64::from(header.length)
    };
    match header.kind {
        CommandKind::Disconnect => Ok(Task::Disconnect),
        CommandKind::Flush => Ok(Task::Flush),
        CommandKind::Read => {
            check_range(header, rules, Errno::Invalid)?;
            if header.length > PAYLOAD_MAX {
                return Err(too_long(header));
            }
            let skew = (header.offset % SECTOR) as usize;
            Ok(Task::Read { extent: covering(bytes()), skew, len: header.length as usize })
        }
        CommandKind::Write => {
            check_access(rules)?;
            check_range(header, rules, Errno::NoSpace)?;
            match body {
                Body::Bytes(payload) => {
                    Ok(Task::Change(Change::write(bytes(), payload.into_buf(), durability)))
                }
                Body::Skipped | Body::Nothing => Err(too_long(header)),
            }
        }
        CommandKind::WriteZeroes => {
            check_access(rules)?;
            check_range(header, rules, Errno::NoSpace)?;
            if header.flags.contains(CommandFlags::FAST_ZERO) {
                let message = "disks write zeroes no faster than anything else";
                return Err(Failure::new(Errno::NotSupported, message));
            }
            Ok(Task::Bare(Bare { deed: Deed::Zero, bytes: bytes(), durability }))
        }
        CommandKind::Trim => {
            check_access(rules)?;
            check_range(header, rules, Errno::Invalid)?;
            Ok(Task::Bare(Bare { deed: Deed::Trim, bytes: bytes(), durability }))
        }
        CommandKind::Cache => {
            check_range(header, rules, Errno::Invalid)?;
            Ok(Task::Nothing)
        }
        CommandKind::BlockStatus => {
            if rules.agreed.status == Status::NotChosen {
                return Err(Failure::new(Errno::Invalid, "block status was not negotiated"));
            }
            check_range(header, rules, Errno::Invalid)?;
            Ok(Task::Status { length: header.length })
        }
        CommandKind::Unknown(number) => {
            Err(Failure::new(Errno::Invalid, format!("command {number} is not known")))
        }
    }
}

fn check_flags(header: &RequestHeader, rules: &Rules) -> Result<(), Failure> {
    // Every command may carry FUA, whether it writes or not.
    let specific = match header.kind {
        CommandKind::Read if rules.agreed.replies == Replies::Structured => CommandFlags::DF,
        CommandKind::WriteZeroes => CommandFlags::NO_HOLE | CommandFlags::FAST_ZERO,
        CommandKind::BlockStatus => CommandFlags::REQ_ONE,
        CommandKind::Read
        | CommandKind::Write
        | CommandKind::Disconnect
        | CommandKind::Flush
        | CommandKind::Trim
        | CommandKind::Cache
        | CommandKind::Unknown(_) => CommandFlags::NONE,
    };
    let wrong = header.flags.without(specific | CommandFlags::FUA);
    // The flags of a disconnect are not checked.
    if wrong == CommandFlags::NONE || header.kind == CommandKind::Disconnect {
        return Ok(());
    }
    let message = format!("flags {:#x} do not go with {:?}", wrong.bits(), header.kind);
    Err(Failure::new(Errno::Invalid, message))
}

fn check_access(rules: &Rules) -> Result<(), Failure> {
    match rules.access {
        Access::ReadWrite => Ok(()),
        Access::ReadOnly => Err(Failure::new(Errno::NotPermitted, "the export is read-only")),
    }
}

fn check_range(header: &RequestHeader, rules: &Rules, past_end: Errno) -> Result<(), Failure> {
    let RequestHeader { offset, length, .. } = *header;
    if length == 0 {
        return Err(Failure::new(Errno::Invalid, "the request is about no bytes"));
    }
    let end = offset.checked_add(length.into());
    if end.is_some_and(|end| end <= rules.size.get()) {
        return Ok(());
    }
    let size = rules.size.get();
    let message = format!("{length} bytes at {offset} do not fit into {size} bytes");
    Err(Failure::new(past_end, message))
}

fn too_long(header: &RequestHeader) -> Failure {
    let message = format!("{} bytes are too many: the limit is {PAYLOAD_MAX}", header.length);
    Failure::new(Errno::Invalid, message)
}

#[cfg(test)]
mod tests {
    use levelhead_block::Command;
    use levelhead_units::Sectors;

    use super::super::change::Next;
    use super::*;
    use crate::codec::{Cookie, Payload};

    const SIZE: Sectors = Sectors::new(16);
    const AGREED: Agreed =
        Agreed { export: 0, replies: Replies::Structured, status: Status::Chosen };
    const RULES: Rules = Rules { size: SIZE.bytes(), access: Access::ReadWrite, agreed: AGREED };

    fn header(kind: CommandKind, offset: u64, length: u32) -> RequestHeader {
        RequestHeader { flags: CommandFlags::NONE, kind, cookie: Cookie::new(1), offset, length }
    }

    fn body(header: &RequestHeader, byte: u8) -> Body {
        match header.kind {
            CommandKind::Write => {
                let bytes = vec![byte; header.length as usize];
                Body::Bytes(Payload::copy_of(header.offset, &bytes))
            }
            _ => Body::Nothing,
        }
    }

    fn change(header: &RequestHeader, byte: u8) -> Change {
        match task(header, body(header, byte), &RULES) {
            Ok(Task::Change(change)) => change,
            Ok(Task::Bare(bare)) => bare.into_change(),
            other => panic!("{header:?} became {other:?}"),
        }
    }

    fn error(header: &RequestHeader, rules: &Rules) -> Errno {
        task(header, body(header, 0), rules).expect_err("it cannot be done").error
    }

    #[test]
    fn durability_follows_the_flag() {
        for (flags, expected) in
            [(CommandFlags::NONE, Durability::Cached), (CommandFlags::FUA, Durability::Durable)]
        {
            let header = RequestHeader { flags, ..header(CommandKind::Write, 0, 4096) };
            let Next::SubmitLast(request) = change(&header, 1).next(None) else { panic!() };
            let Command::Write { durability, .. } = request.command else { panic!() };
            assert_eq!(durability, expected);
        }
    }

    #[test]
    fn requests_that_make_no_sense_are_refused_as_other_servers_do() {
        let size = SIZE.bytes().get();
        let past = |kind| error(&header(kind, size - 4096, 4097), &RULES);
        for kind in [CommandKind::Read, CommandKind::Trim, CommandKind::Cache] {
            assert_eq!(past(kind), Errno::Invalid);
        }
        for kind in [CommandKind::Write, CommandKind::WriteZeroes] {
            assert_eq!(past(kind), Errno::NoSpace);
            assert_eq!(error(&header(kind, u64::MAX, 1), &RULES), Errno::NoSpace);
        }
        for kind in [CommandKind::Read, CommandKind::WriteZeroes, CommandKind::BlockStatus] {
            assert_eq!(error(&header(kind, 0, 0), &RULES), Errno::Invalid);
        }
        let unknown = header(CommandKind::Unknown(99), 0, 0);
        assert_eq!(error(&unknown, &RULES), Errno::Invalid);
        let large = Rules { size: Bytes::new(1 << 40), ..RULES };
        let long = header(CommandKind::Read, 0, PAYLOAD_MAX + 1);
        assert_eq!(error(&long, &large), Errno::Invalid);
        let long = header(CommandKind::Write, 0, PAYLOAD_MAX + 1);
        let failure = task(&long, Body::Skipped, &large).unwrap_err();
        assert_eq!(failure.error, Errno::Invalid);
    }

    #[test]
    fn flags_that_do_not_belong_are_refused() {
        let with = |kind, flags| RequestHeader { flags, ..header(kind, 0, 4096) };
        assert_eq!(error(&with(CommandKind::Write, CommandFlags::DF), &RULES), Errno::Invalid);
        let payload = with(CommandKind::Write, CommandFlags::PAYLOAD_LEN);
        assert_eq!(error(&payload, &RULES), Errno::Invalid);
        let simple = Rules { agreed: Agreed { replies: Replies::Simple, ..AGREED }, ..RULES };
        let unfragmented = with(CommandKind::Read, CommandFlags::DF);
        assert_eq!(error(&unfragmented, &simple), Errno::Invalid);
        assert!(matches!(task(&unfragmented, Body::Nothing, &RULES), Ok(Task::Read { .. })));
        let fast = with(CommandKind::WriteZeroes, CommandFlags::FAST_ZERO);
        assert_eq!(error(&fast, &RULES), Errno::NotSupported);
        let no_hole = with(CommandKind::WriteZeroes, CommandFlags::NO_HOLE);
        assert!(matches!(task(&no_hole, Body::Nothing, &RULES), Ok(Task::Bare(_))));
    }

    #[test]
    fn read_only_export_refuses_what_writes() {
        let rules = Rules { access: Access::ReadOnly, ..RULES };
        for kind in [CommandKind::Write, CommandKind::WriteZeroes, CommandKind::Trim] {
            assert_eq!(error(&header(kind, 0, 4096), &rules), Errno::NotPermitted);
        }
        let read = header(CommandKind::Read, 0, 4096);
        assert!(matches!(task(&read, Body::Nothing, &rules), Ok(Task::Read { .. })));
    }
}
