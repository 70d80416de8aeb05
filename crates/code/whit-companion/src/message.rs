//! Lines between whit and its fetcher.

use std::fmt;

use whit_types::BuildId;

use crate::parts::Parts;

/// Longest line that is taken.
const MAX_LINE_BYTES: usize = 4096;

/// A line to the fetcher: one binary.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Request {
    /// Its build id.
    pub id: BuildId,
    /// The parts that are wanted.
    pub parts: Parts,
}

/// A line from the fetcher.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// The binary that it is about.
    pub id: BuildId,
    /// Progress, or the end.
    pub news: News,
}

/// The course of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum News {
    /// Bytes that came, and that will come as far as the server said.
    Progress {
        /// Bytes of the file or section under way.
        done_bytes: u64,
        /// Its size; zero where unknown.
        total_bytes: u64,
    },
    /// The request is over.
    End(End),
}

/// How a request ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum End {
    /// The cache has all that servers have of it. Bytes that came over the network; none where all was there.
    Here {
        /// Bytes of contents.
        fetched_bytes: u64,
    },
    /// The user wanted an end before it was done.
    Stopped,
    /// There is nothing, for this reason.
    Failed(String),
}

impl Request {
    /// The line after the last request.
    pub const LAST: &'static str = "end";

    /// Reads a line.
    pub fn parse(line: &str) -> Option<Request> {
        let (id, parts) = line.trim_end().split_once(' ')?;
        let sections = |symbols, debug_info| Parts::Sections { symbols, debug_info };
        let parts = match parts {
            "symbols" => sections(true, false),
            "debug" => sections(false, true),
            "symbols,debug" => sections(true, true),
            "whole" => Parts::Whole,
            _ => return None,
        };
        Some(Request { id: parse_id(id)?, parts })
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = match self.parts {
            Parts::Sections { symbols: true, debug_info: false } => "symbols",
            Parts::Sections { symbols: false, .. } => "debug",
            Parts::Sections { symbols: true, debug_info: true } => "symbols,debug",
            Parts::Whole => "whole",
        };
        write!(f, "{} {parts}", self.id)
    }
}

impl Answer {
    /// Reads a line.
    pub fn parse(line: &str) -> Option<Answer> {
        if line.len() > MAX_LINE_BYTES {
            return None;
        }
        let mut words = line.trim_end_matches('\n').splitn(3, ' ');
        let (kind, id) = (words.next()?, parse_id(words.next()?)?);
        let rest = words.next().unwrap_or_default();
        let news = match kind {
            "bytes" => {
                let (done, total) = rest.split_once(' ')?;
                let (done_bytes, total_bytes) = (done.parse().ok()?, total.parse().ok()?);
                News::Progress { done_bytes, total_bytes }
            }
            "here" => News::End(End::Here { fetched_bytes: rest.parse().ok()? }),
            "stopped" => News::End(End::Stopped),
            "failed" => News::End(End::Failed(rest.to_owned())),
            _ => return None,
        };
        Some(Answer { id, news })
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.id;
        match &self.news {
            News::Progress { done_bytes, total_bytes } => {
                write!(f, "bytes {id} {done_bytes} {total_bytes}")
            }
            News::End(End::Here { fetched_bytes }) => write!(f, "here {id} {fetched_bytes}"),
            News::End(End::Stopped) => write!(f, "stopped {id}"),
            // Servers may say anything: it stays one line, and a short one.
            News::End(End::Failed(reason)) => {
                let plain = reason.chars().map(|c| if c.is_control() { ' ' } else { c });
                write!(f, "failed {id} {}", plain.take(MAX_LINE_BYTES / 8).collect::<String>())
            }
        }
    }
}

fn parse_id(hex: &str) -> Option<BuildId> {
    if !hex.is_ascii() || !hex.len().is_multiple_of(2) {
        return None;
    }
    let byte = |at: usize| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..hex.len()).step_by(2).map(byte).collect();
    BuildId::new(&bytes?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ids() -> impl Strategy<Value = BuildId> {
        prop::collection::vec(any::<u8>(), 2..20).prop_filter_map("an id", |id| BuildId::new(&id))
    }

    proptest! {
        #[test]
        fn answers_come_back_as_they_went(id in ids(), a: u64, b: u64, text in "[a-z (]{1,30}") {
            let news = [
                News::Progress { done_bytes: a, total_bytes: b },
                News::End(End::Here { fetched_bytes: a }),
                News::End(End::Stopped),
                News::End(End::Failed(text)),
            ];
            for news in news {
                let answer = Answer { id, news };
                prop_assert_eq!(Answer::parse(&answer.to_string()), Some(answer));
            }
        }

        #[test]
        fn requests_come_back_as_they_went(id in ids(), symbols: bool, whole: bool) {
            let debug_info = !symbols;
            let parts =
                if whole { Parts::Whole } else { Parts::Sections { symbols, debug_info } };
            let request = Request { id, parts };
            prop_assert_eq!(Request::parse(&request.to_string()), Some(request));
        }

        #[test]
        fn any_text_of_a_server_is_one_line(id in ids(), reason: String) {
            let line = Answer { id, news: News::End(End::Failed(reason)) }.to_string();
            prop_assert!(!line.contains(char::is_control) && Answer::parse(&line).is_some());
        }

        #[test]
        fn arbitrary_lines_are_survived(line: String) {
            Answer::parse(&line);
            Request::parse(&line);
        }
    }
}
