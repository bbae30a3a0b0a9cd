//! The help of options that take a policy: one line for each.

/// Every policy, by its name on the command line, in a line.
const LINES: [(&str, &str); 12] = [
    ("level", "reads from the drives that answer soonest, avoids slow ones"),
    ("level:extra-reads=P%", "the same, with P percent more commands at most to answer sooner"),
    ("normal", "ordinary RAID: drives retry, redundancy serves what they give up on"),
    ("on-failure", "no retries; redundancy serves each sector that fails"),
    ("assisted", "reads the whole group without retries, answers once it decodes"),
    ("assisted:no-removal", "the same, and cancels no command after the answer"),
    ("assisted:own-first", "waits for the requested data, decodes only what fails"),
    (
        "pro-active",
        "assisted where that is predicted to lower the latency of all requests, else normal",
    ),
    ("pro-active:exact", "the same, with the exact queueing formula"),
    ("pro-active:externality", "the same, with the request's own delay counted in"),
    (
        "tolerant:reactive, tolerant:adaptive",
        "reads more when a drive is late; adaptive: ahead of time if it persists",
    ),
    (
        "tolerant:proactive-1, tolerant:proactive-2",
        "always reads enough to tolerate one or two late drives",
    ),
];

/// Of an option that takes a policy: what it is, and a line about each policy. A line that begins with a space is one in man pages, too.
pub fn each(what: &str) -> String {
    let lines: Vec<String> = LINES.iter().map(|(name, line)| format!("  {name}  {line}")).collect();
    format!("{what} (docs/level.md):\n\n{}", lines.join("\n"))
}
