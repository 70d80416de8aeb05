//! Answers of receivers, and their consequences.

use std::time::{Duration, SystemTime};

/// The fate of a window.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// The receiver has it.
    Taken,
    /// The receiver is away or busy; the window waits.
    Later {
        /// The receiver's wish.
        after: Option<Duration>,
        reason: String,
    },
    /// The receiver failed over this request. Another window may do better, so this one is tried a few times alone.
    Failed { reason: String },
    /// The destination is wrong: each window would be refused until somebody mends it. So they wait.
    Misconfigured { reason: String },
    /// The receiver will never take this window.
    Refused { reason: String },
}

/// Judges a status. `retry_after` is the header of this name.
pub(crate) fn verdict(
    status: u16,
    retry_after: Option<&str>,
    text: &str,
    now: SystemTime,
) -> Verdict {
    let reason = reason(status, text);
    let after = retry_after.and_then(|text| wait(text, now));
    match status {
        200..=299 => Verdict::Taken,
        // Busy, or a proxy without its server: those that OTLP tells clients to repeat.
        429 | 502 | 503 | 504 => Verdict::Later { after, reason },
        408 => Verdict::Later { after, reason },
        500..=599 => Verdict::Failed { reason },
        // A wrong address or token.
        300..=399 | 401 | 403 | 404 | 405 | 407 => Verdict::Misconfigured { reason },
        _ => Verdict::Refused { reason },
    }
}

/// Status and the beginning of the text, in one line.
fn reason(status: u16, text: &str) -> String {
    const SHOWN_CHARS: usize = 200;
    let is_shown = |c: &char| !c.is_control() && *c != '\u{fffd}';
    let line = text.lines().next().unwrap_or_default();
    let text: String = line.chars().filter(is_shown).take(SHOWN_CHARS).collect();
    let text = text.trim();
    match text {
        "" => format!("answered with status {status}"),
        text => format!("answered with status {status}: {text}"),
    }
}

/// Seconds, or a time of day.
fn wait(text: &str, now: SystemTime) -> Option<Duration> {
    if let Ok(seconds) = text.trim().parse() {
        return Some(Duration::from_secs(seconds));
    }
    let time = httpdate::parse_http_date(text.trim()).ok()?;
    Some(time.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(status: u16, retry_after: Option<&str>) -> Verdict {
        verdict(
            status,
            retry_after,
            "why\nmore",
            SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_700),
        )
    }

    #[test]
    fn busy_receivers_are_asked_again_when_they_say() {
        let reason = "answered with status 429: why".to_owned();
        let after = Some(Duration::from_secs(7));
        assert_eq!(of(429, Some("7")), Verdict::Later { after, reason });
        let Verdict::Later { after, .. } = of(503, Some("Sun, 06 Nov 1994 08:49:37 GMT")) else {
            panic!("503 is busy")
        };
        assert_eq!(after, Some(Duration::from_secs(77)));
        for (status, text) in [(502, None), (504, Some("soon")), (408, Some("-1"))] {
            assert!(matches!(of(status, text), Verdict::Later { after: None, .. }), "{status}");
        }
    }

    #[test]
    fn other_answers_are_final_failed_or_for_people() {
        assert_eq!(of(200, None), Verdict::Taken);
        assert_eq!(of(204, None), Verdict::Taken);
        for status in [400, 413, 415, 422, 431] {
            assert!(matches!(of(status, None), Verdict::Refused { .. }), "{status}");
        }
        for status in [500, 501, 507] {
            assert!(matches!(of(status, None), Verdict::Failed { .. }), "{status}");
        }
        for status in [301, 401, 403, 404, 405] {
            assert!(matches!(of(status, None), Verdict::Misconfigured { .. }), "{status}");
        }
    }

    #[test]
    fn texts_of_others_are_one_short_line() {
        let text = format!("\u{1b}[31m{}\nsecond", "x".repeat(1000));
        let Verdict::Refused { reason } = verdict(400, None, &text, SystemTime::now()) else {
            panic!("400 is final")
        };
        assert!(reason.len() < 300 && !reason.contains(['\u{1b}', '\n']), "{reason}");
    }
}
