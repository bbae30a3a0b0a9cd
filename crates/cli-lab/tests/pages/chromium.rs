//! A headless Chromium that is driven by its DevTools protocol over a pipe: messages are JSON that end in a
//! zero byte.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Chromium {
    child: Child,
    to: Option<ChildStdin>,
    from: Receiver<Value>,
    next: u64,
    events: Vec<Value>,
    // Removed when it has ended.
    _profile: TempDir,
}

/// A page that the browser shows.
#[derive(Clone, Debug)]
pub(crate) struct Tab {
    session: String,
}

impl Chromium {
    /// Starts one.
    pub(crate) fn start() -> Self {
        let profile = tempfile::tempdir().unwrap();
        let folder = profile.path().to_str().unwrap();
        // The protocol is spoken on the descriptors 3 and 4.
        let script = "exec chromium --headless --no-sandbox --disable-gpu --hide-scrollbars \
                      --disable-dev-shm-usage --disable-background-networking --no-first-run \
                      --force-color-profile=srgb --remote-debugging-pipe --user-data-dir=\"$1\" \
                      about:blank 3<&0 4>&1 </dev/null >/dev/null 2>/dev/null";
        let mut child = Command::new("sh")
            .args(["-c", script, "sh", folder])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let to = child.stdin.take();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let (send, from) = channel();
        std::thread::spawn(move || {
            let mut message = Vec::new();
            while out.read_until(0, &mut message).is_ok_and(|len| len > 0) {
                message.pop();
                let Ok(value) = serde_json::from_slice(&message) else { return };
                if send.send(value).is_err() {
                    return;
                }
                message.clear();
            }
        });
        Self { child, to, from, next: 0, events: Vec::new(), _profile: profile }
    }

    /// An empty page.
    pub(crate) fn tab(&mut self) -> Tab {
        let target = self.ask(None, "Target.createTarget", &json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let attached = self.ask(None, "Target.attachToTarget", &attach);
        let tab = Tab { session: attached["sessionId"].as_str().unwrap().to_owned() };
        for domain in ["Page", "Runtime", "Log", "Network"] {
            self.call(&tab, &format!("{domain}.enable"), &json!({}));
        }
        tab
    }

    /// What a page answers to a method of the protocol.
    #[track_caller]
    pub(crate) fn call(&mut self, tab: &Tab, method: &str, params: &Value) -> Value {
        self.ask(Some(tab), method, params)
    }

    /// The value of an expression in a page; a promise is waited for.
    #[track_caller]
    pub(crate) fn value(&mut self, tab: &Tab, expression: &str) -> Value {
        let params = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let mut answer = self.call(tab, "Runtime.evaluate", &params);
        assert!(answer.get("exceptionDetails").is_none(), "{answer}");
        answer["result"]["value"].take()
    }

    /// What the browser told of a page since the last call.
    pub(crate) fn take_events(&mut self, tab: &Tab) -> Vec<Value> {
        let (of_tab, others): (Vec<Value>, Vec<Value>) = std::mem::take(&mut self.events)
            .into_iter()
            .partition(|event| event["sessionId"] == tab.session.as_str());
        self.events = others;
        of_tab
    }

    /// Waits for an event of a page, which stays to be taken.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, tab: &Tab, method: &str) {
        let is_it =
            |event: &Value| event["sessionId"] == tab.session.as_str() && event["method"] == method;
        let until = Instant::now() + PATIENCE;
        while !self.events.iter().any(is_it) {
            let event = self.receive(until, method);
            self.events.push(event);
        }
    }

    #[track_caller]
    fn ask(&mut self, tab: Option<&Tab>, method: &str, params: &Value) -> Value {
        self.next += 1;
        let id = self.next;
        let mut message = json!({"id": id, "method": method, "params": params});
        if let Some(tab) = tab {
            message["sessionId"] = json!(tab.session);
        }
        let mut bytes = serde_json::to_vec(&message).unwrap();
        bytes.push(0);
        self.to.as_mut().unwrap().write_all(&bytes).unwrap();
        let until = Instant::now() + PATIENCE;
        loop {
            let mut answer = self.receive(until, method);
            if answer["id"] == id {
                assert!(answer.get("error").is_none(), "{method}: {}", answer["error"]);
                return answer["result"].take();
            }
            self.events.push(answer);
        }
    }

    #[track_caller]
    fn receive(&mut self, until: Instant, what: &str) -> Value {
        let left = until.saturating_duration_since(Instant::now());
        match self.from.recv_timeout(left) {
            Ok(value) => value,
            Err(RecvTimeoutError::Timeout) => panic!("{what}: no answer in {PATIENCE:?}"),
            Err(RecvTimeoutError::Disconnected) => panic!("{what}: Chromium has ended"),
        }
    }
}

impl Drop for Chromium {
    /// A browser whose pipe is closed ends by itself; it is ended all the same.
    fn drop(&mut self) {
        self.to = None;
        let until = Instant::now() + Duration::from_secs(5);
        while self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            if Instant::now() > until {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
