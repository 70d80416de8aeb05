//! Requests: intervals of a thread that begin with a sample of one event and end with one of another.
//!
//! The names of both events say which request they belong to. Their samples have the stack pointer of user mode as a
//! field, which tells nested calls from each other, and at the beginning perhaps a key.

/// In front of the names of both events.
const PREFIX: &str = "request:";

/// The field with the stack pointer.
pub const STACK_POINTER: &str = "sp";
/// The field with the key: a number or a text.
pub const KEY: &str = "key";

/// Which end of a request an event is at.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Edge {
    /// The call of the function.
    Begin,
    /// Its return.
    End,
}

impl Edge {
    const ALL: [Edge; 2] = [Edge::Begin, Edge::End];

    fn word(self) -> &'static str {
        match self {
            Edge::Begin => ":begin",
            Edge::End => ":end",
        }
    }
}

/// The name of an event of the requests `name`.
pub fn event_name(name: &str, edge: Edge) -> String {
    format!("{PREFIX}{name}{}", edge.word())
}

/// The name of the requests whose event has this name; `None` for other events.
pub fn request_of(event: &str) -> Option<(&str, Edge)> {
    let name = event.strip_prefix(PREFIX)?;
    Edge::ALL.into_iter().find_map(|edge| Some((name.strip_suffix(edge.word())?, edge)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_events_name_the_request() {
        for edge in Edge::ALL {
            assert_eq!(request_of(&event_name("a:begin", edge)), Some(("a:begin", edge)));
        }
        for other in ["request:a", "a:begin", "request:a:middle", "cycles"] {
            assert_eq!(request_of(other), None);
        }
    }
}
