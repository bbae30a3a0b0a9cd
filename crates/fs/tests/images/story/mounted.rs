//! The core over a disk in memory: requests are asked one at a time, commands end in an order of their own.

use std::collections::VecDeque;

use levelhead_block::{BlockDevice, RequestId};
use levelhead_erasure::Kernel;
use levelhead_fs::format::superblock::Superblock;
use levelhead_fs::{
    Action, Answer, Caller, Filesystem, Moment, MountMode, Request, Settings, Submit, What,
};
use levelhead_units::{Instant, Nanos, Sectors};

use super::disk::Disk;

/// Waits without an end of anything after which it hangs.
const WAITS_MAX: u32 = 64;

/// See the module.
pub(crate) struct Mounted {
    core: Filesystem,
    pub(crate) disk: Disk,
    now: Instant,
    inside: VecDeque<Submit>,
    answers: Vec<Answer>,
    request_last: u64,
    order: u64,
}

impl Mounted {
    pub(crate) fn new(disk: Disk, superblock: Superblock, mode: MountMode, order: u64) -> Self {
        let now = Instant::ZERO;
        let cache = Sectors::new(1 << 10);
        let settings = Settings { mode, cache, ..Settings::new(Kernel::best()) };
        let core = Filesystem::new(now, superblock, settings);
        let (inside, answers) = Default::default();
        Self { core, disk, now, inside, answers, request_last: 0, order }
    }

    pub(crate) fn root(&self) -> u64 {
        self.core.root()
    }

    /// Asks, and waits for the answer.
    pub(crate) fn run(&mut self, what: What) -> Answer {
        self.request_last += 1;
        let request = Request {
            id: RequestId(self.request_last),
            caller: Caller { uid: 0, gid: 0 },
            now: Moment { seconds: self.request_last as i64, nanos: 0 },
            what,
        };
        let text = format!("{:?}", request.what);
        self.core.handle_request(self.now, request);
        self.go_on(&text[..text.len().min(100)], |mounted| !mounted.answers.is_empty());
        assert_eq!(self.answers.len(), 1, "{text} has several answers");
        self.answers.pop().expect("it has just come")
    }

    /// Brings everything to its place; returns what is on the disk then.
    pub(crate) fn unmount(mut self) -> Disk {
        self.core.unmount(self.now);
        self.go_on("unmount", |mounted| mounted.core.is_unmounted());
        self.disk
    }

    fn go_on(&mut self, name: &str, is_done: impl Fn(&Self) -> bool) {
        let mut waits = 0;
        loop {
            while let Some(action) = self.core.poll() {
                match action {
                    Action::Submit(submit) => self.inside.push_back(submit),
                    Action::Reply { answer, .. } => self.answers.push(answer),
                    Action::Event(_) | Action::Invalidate { .. } => {}
                }
            }
            if is_done(self) {
                return;
            }
            if self.inside.is_empty() {
                waits += 1;
                assert!(waits < WAITS_MAX, "{name} never ends");
                self.now = self.core.deadline().map_or(self.now, |at| at.max(self.now));
                self.core.handle_timeout(self.now);
                continue;
            }
            waits = 0;
            self.order = self.order.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = (self.order >> 33) as usize % self.inside.len();
            let Submit { sub, request } = self.inside.remove(at).expect("it is there");
            self.now = self.now + Nanos::from_micros(100);
            let reply = self.disk.run(vec![request]).pop().expect("one request, one reply");
            self.core.handle_done(self.now, sub, reply);
        }
    }
}
