//! Answers of Prometheus to `query_range`, saved or fetched, as samples of groups.
//!
//! The query asks for a mean latency, a series a drive, as
//! `rate(node_disk_read_time_seconds_total[5m]) / rate(node_disk_reads_completed_total[5m])`. A list of members says which series
//! is which drive of which group: a CSV with columns `group` and `drive`; every other column is a label that has to be equal, so that
//! `group,drive,instance,device` names a disk of a host. A series of no member is left out, and so is a value that is no number.
//!
//! An answer becomes windows of drives while it comes ([`answer`]): of its text no more is held than a string of it.

mod answer;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use levelhead_fleet::detect::{Gather, Recording};
use levelhead_units::foreign;

use self::answer::Gathered;
use crate::ReadError;
use crate::lines::{Lines, all_fields};

/// The most members.
const MEMBERS_MAX: usize = 1 << 20;
/// The longest time that an answer may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// Which series is which drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Members {
    labels: Vec<String>,
    /// By the values of the labels.
    members: BTreeMap<Vec<String>, Member>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Member {
    group: String,
    drive: String,
}

impl Members {
    /// Reads a list of members.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, one without the columns or without a label, and two rows with equal labels.
    pub fn read(path: &Path) -> Result<Self, ReadError> {
        let mut lines = Lines::open(path)?;
        let header = lines.next()?.map(all_fields).unwrap_or_default();
        let place = |name: &str| {
            let found = header.iter().position(|column| column == name);
            found.ok_or_else(|| ReadError::at(path, 1, format!("missing column {name}")))
        };
        let (group, drive) = (place("group")?, place("drive")?);
        let is_label = |at: &usize| ![group, drive].contains(at);
        let places: Vec<usize> = (0..header.len()).filter(is_label).collect();
        let labels: Vec<String> = places.iter().map(|&at| header[at].clone()).collect();
        if labels.is_empty() {
            let why = "expected a label column beside group and drive, such as device";
            return Err(ReadError::at(path, 1, why));
        }
        let mut members = BTreeMap::new();
        while let Some(line) = lines.next()? {
            if line.is_empty() {
                continue;
            }
            let fields = all_fields(line);
            let wrong = |why: String| ReadError::at(path, lines.number(), why);
            if fields.len() != header.len() {
                return Err(wrong(format!("{} fields instead of {}", fields.len(), header.len())));
            }
            if members.len() == MEMBERS_MAX {
                return Err(wrong(format!("a list has at most {MEMBERS_MAX} members")));
            }
            let member = Member { group: fields[group].clone(), drive: fields[drive].clone() };
            let key: Vec<String> = places.iter().map(|&at| fields[at].clone()).collect();
            if let Some(other) = members.insert(key, member) {
                let Member { group, drive } = other;
                return Err(wrong(format!("drive {drive} of group {group} has equal labels")));
            }
        }
        Ok(Self { labels, members })
    }

    /// The member with these labels.
    fn of(&self, labels: &BTreeMap<String, String>) -> Option<&Member> {
        let key: Option<Vec<String>> =
            self.labels.iter().map(|label| labels.get(label).cloned()).collect();
        self.members.get(&key?)
    }
}

/// What is asked of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    /// The query.
    pub query: String,
    /// From when, in unix seconds.
    pub start: i64,
    /// Until when, in unix seconds.
    pub end: i64,
    /// How many seconds from one value to the next.
    pub step: u32,
}

/// Groups that were read.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// The groups, ordered by name.
    pub groups: Vec<Recording>,
    /// How many series are of no member.
    pub strangers: usize,
}

/// Reads a saved answer. A value times `unit_us` is a latency in microseconds.
///
/// # Errors
///
/// A file that cannot be read, is no answer, or has no series of a member.
pub fn read(path: &Path, members: &Members, unit_us: f64) -> Result<Imported, ReadError> {
    let wrong = |why: String| ReadError::of(path, why);
    let file = File::open(path).map_err(|error| wrong(error.to_string()))?;
    groups_of(file, members, unit_us).map_err(wrong)
}

/// Asks a server, as `http://localhost:9090`, and reads its answer. Nobody else is asked: a redirect is not followed.
///
/// # Errors
///
/// As [`read`], and a server that does not answer in two minutes. There is no TLS: what is behind it is saved by another program.
pub fn fetch(
    server: &str,
    range: &Range,
    members: &Members,
    unit_us: f64,
) -> Result<Imported, ReadError> {
    let place = Path::new(server);
    let wrong = |why: String| ReadError::of(place, why);
    let config = ureq::Agent::config_builder().timeout_global(Some(PATIENCE)).max_redirects(0);
    let agent: ureq::Agent = config.http_status_as_error(false).build().into();
    let url = format!("{}/api/v1/query_range", server.trim_end_matches('/'));
    let answer = agent
        .get(&url)
        .query("query", &range.query)
        .query("start", range.start.to_string())
        .query("end", range.end.to_string())
        .query("step", range.step.to_string())
        .call();
    let mut answer = answer.map_err(|error| wrong(error.to_string()))?;
    if answer.status().is_redirection() {
        let location = answer.headers().get("location").map(ureq::http::HeaderValue::as_bytes);
        let location = foreign(&String::from_utf8_lossy(location.unwrap_or_default()));
        let why =
            format!("the server sends on to '{location}', which is not asked; name it instead");
        return Err(wrong(why));
    }
    groups_of(answer.body_mut().as_reader(), members, unit_us).map_err(wrong)
}

/// The groups of an answer.
fn groups_of(text: impl Read, members: &Members, unit_us: f64) -> Result<Imported, String> {
    let answer = answer::read(text, members, unit_us)?;
    if answer.status.is_empty() {
        return Err("this is not an answer of Prometheus: it has no status".to_owned());
    }
    if answer.status != "success" || !answer.has_data {
        return Err(format!("Prometheus answered {}: {}", answer.status, answer.error));
    }
    if answer.result_type != "matrix" {
        let kind = answer.result_type;
        return Err(format!("the answer is a {kind}; query_range answers a matrix"));
    }
    let Gathered { groups, strangers, .. } = answer.gathered;
    if groups.is_empty() {
        return Err(format!("none of {strangers} series is of a member"));
    }
    let mut groups: Vec<Recording> =
        groups.into_iter().map(|(group, gather)| gather.finish(group)).collect();
    groups.sort_by_cached_key(|group| Gather::order_of(&group.group));
    Ok(Imported { groups, strangers })
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;

    use super::*;

    const ANSWER: &str = r#"{"status":"success","data":{"resultType":"matrix","result":[
        {"metric":{"device":"sda","instance":"a"},"values":[[600,"0.004"],[615.5,"0.006"],[630,"NaN"]]},
        {"metric":{"device":"sdb","instance":"a"},"values":[[600,"0.001"]]},
        {"metric":{"device":"sdz","instance":"a"},"values":[[600,"1"]]}]}}"#;

    fn members(text: &str) -> Result<Members, ReadError> {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(text.as_bytes()).expect("room");
        Members::read(file.path())
    }

    fn two() -> Members {
        members("group,drive,instance,device\nmd0,one,a,sda\nmd0,two,a,sdb\n").expect("good lines")
    }

    #[test]
    fn series_become_the_drives_of_groups() {
        let imported = groups_of(ANSWER.as_bytes(), &two(), 1e6).expect("an answer");
        assert_eq!((imported.strangers, imported.groups.len()), (1, 1));
        let group = &imported.groups[0];
        assert_eq!((group.group.as_str(), group.windows.len()), ("md0", 1));
        assert_eq!(group.drives, ["one", "two"]);
        let latency = |at: usize| group.windows[0].members[at].expect("a reading").latency_us;
        assert!((latency(0) - 5000.0).abs() < 1e-6 && (latency(1) - 1000.0).abs() < 1e-6);
    }

    #[test]
    fn what_is_no_answer_is_said_in_a_sentence() {
        let error = |text: &str| groups_of(text.as_bytes(), &two(), 1.0).expect_err("bad");
        assert!(error("[").contains("not an answer of Prometheus"));
        assert!(error(&ANSWER.replace("]}}", "]}}x")).contains("not an answer of Prometheus"));
        assert!(error(r#"{"status":"error","error":"too many"}"#).contains("error: too many"));
        let vector = r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#;
        assert!(error(vector).contains("a vector"));
        assert!(error(&ANSWER.replace("\"sdb\"", "\"sda\"")).contains("two series"));
        let no_member = ANSWER.replace("\"sda\"", "\"x\"").replace("\"sdb\"", "\"y\"");
        assert!(error(&no_member).contains("none of 3 series"));
        let list = |text: &str| members(text).expect_err("bad").to_string();
        assert!(list("group,device\n").contains("missing column drive"));
        assert!(list("group,drive\n").contains("expected a label column"));
        assert!(list("group,drive,device\na,b\n").contains("line 2: 2 fields instead of 3"));
        assert!(list("group,drive,device\na,b,c\nd,e,c\n").contains("line 3: drive b of group a"));
    }

    #[test]
    fn an_answer_is_fetched() {
        let server = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}", server.local_addr().expect("an address"));
        let range = Range { query: "a / b".to_owned(), start: 0, end: 900, step: 15 };
        let asked = std::thread::spawn(move || {
            let length = ANSWER.len();
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n");
            answer_once(&server, &format!("{head}{ANSWER}"))
        });
        let imported = fetch(&address, &range, &two(), 1e6).expect("an answer");
        assert_eq!(imported.groups[0].drives.len(), 2);
        let request = asked.join().expect("no panic");
        assert!(request.starts_with("GET /api/v1/query_range?query=a%20"), "{request}");
        assert!(request.contains("&start=0&end=900&step=15 HTTP/1.1"), "{request}");
        let error = fetch("http://127.0.0.1:1", &range, &two(), 1.0).expect_err("no server");
        assert!(error.to_string().contains("127.0.0.1:1"), "{error}");
    }

    /// Answers one request, and returns it.
    fn answer_once(server: &TcpListener, answer: &str) -> String {
        let (mut stream, _) = server.accept().expect("a client");
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).expect("a request");
            request.push(byte[0]);
        }
        stream.write_all(answer.as_bytes()).expect("a client");
        String::from_utf8(request).expect("text")
    }

    #[test]
    fn a_server_is_not_followed_elsewhere_and_what_it_says_is_clean() {
        let [server, other] = [(), ()].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port"));
        let [address, elsewhere] =
            [&server, &other].map(|it| format!("http://{}", it.local_addr().expect("an address")));
        let range = Range { query: "a".to_owned(), start: 0, end: 900, step: 15 };
        let fetched = |answer: String| {
            std::thread::scope(|scope| {
                scope.spawn(|| answer_once(&server, &answer));
                fetch(&address, &range, &two(), 1.0).expect_err("no answer").to_string()
            })
        };
        let error = fetched(format!(
            "HTTP/1.1 302 Found\r\nlocation: {elsewhere}/x\r\ncontent-length: 0\r\n\r\n"
        ));
        assert!(error.contains(&format!("sends on to '{elsewhere}/x'")), "{error}");
        other.set_nonblocking(true).expect("a socket");
        assert!(other.accept().is_err(), "somebody else was asked");
        let said = r#"{"status":"\u001b[31mPWNED\u202e","error":"\nlevelhead: fake"}"#;
        let length = said.len();
        let error = fetched(format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{said}"));
        assert!(error.ends_with(r"answered \x1b[31mPWNED\u{202e}: \nlevelhead: fake"), "{error}");
    }
}
