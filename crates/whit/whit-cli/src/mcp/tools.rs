//! The tools: each makes the arguments of a subcommand.

use serde_json::{Map, Value, json};
use std::ffi::OsString;

/// An argument of a tool.
struct Property {
    name: &'static str,
    /// Its type in JSON Schema.
    kind: &'static str,
    meaning: &'static str,
    is_required: bool,
}

const fn text(name: &'static str, meaning: &'static str) -> Property {
    Property { name, kind: "string", meaning, is_required: true }
}

impl Property {
    const fn optional(self) -> Property {
        Property { is_required: false, ..self }
    }
}

const RECORDING: Property = text("recording", "Path of a recording of whit or perf");

/// A question that whit answers.
pub(super) struct Tool {
    pub(super) name: &'static str,
    meaning: &'static str,
    properties: &'static [Property],
    words: fn(&Arguments<'_>) -> Result<Vec<String>, String>,
}

/// The arguments of a call.
pub(super) struct Arguments<'m>(pub(super) &'m Value);

impl Arguments<'_> {
    fn get(&self, name: &str) -> Result<&str, String> {
        self.find(name).ok_or_else(|| format!("the argument {name} is missing"))
    }

    fn find(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str()
    }

    /// An option with this argument's value; empty where the argument is absent.
    fn option(&self, name: &str, option: &str) -> Vec<String> {
        let value = match self.0.get(name) {
            Some(Value::String(text)) => Some(text.clone()),
            Some(Value::Number(number)) => Some(number.to_string()),
            _ => None,
        };
        value.map(|value| format!("--{option}={value}")).into_iter().collect()
    }

    fn recording(&self) -> Result<Vec<String>, String> {
        Ok(vec![format!("--input={}", self.get("recording")?)])
    }
}

/// A subcommand with its fixed words, and then the recording and options.
fn of_recording(
    words: &[&str],
    arguments: &Arguments<'_>,
    options: Vec<String>,
) -> Result<Vec<String>, String> {
    let words = words.iter().map(|word| (*word).to_owned());
    Ok(words.chain(arguments.recording()?).chain(options).collect())
}

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "brief",
        meaning: "The most telling facts of a recording within a number of bytes: hot functions with intervals, waits, \
                  locks with holders, the critical path, losses, and what is missing",
        properties: &[
            RECORDING,
            Property {
                name: "bytes",
                kind: "integer",
                meaning: "Budget of the answer [default: 4096]",
                is_required: false,
            },
        ],
        words: |arguments| {
            let mut budget = arguments.option("bytes", "brief");
            if budget.is_empty() {
                budget.push("--brief".to_owned());
            }
            of_recording(&["report"], arguments, budget)
        },
    },
    Tool {
        name: "callers",
        meaning: "The functions that call a function, with their shares",
        properties: &[RECORDING, text("function", "Handle or name of the function")],
        words: |arguments| {
            of_recording(&["report"], arguments, arguments.option("function", "callers"))
        },
    },
    Tool {
        name: "callees",
        meaning: "The functions that a function calls, with their shares",
        properties: &[RECORDING, text("function", "Handle or name of the function")],
        words: |arguments| {
            of_recording(&["report"], arguments, arguments.option("function", "callees"))
        },
    },
    Tool {
        name: "annotate",
        meaning: "Instructions and source lines of a function, each with its share",
        properties: &[RECORDING, text("function", "Handle, name, or address in the function")],
        words: |arguments| {
            of_recording(
                &["annotate", "--stdio"],
                arguments,
                arguments.option("function", "symbol"),
            )
        },
    },
    Tool {
        name: "wait",
        meaning: "One wait: call stacks of the waiter and its waker, the object, and all times",
        properties: &[RECORDING, text("wait", "Handle of the wait (w-…)")],
        words: |arguments| of_recording(&["switches"], arguments, arguments.option("wait", "wait")),
    },
    Tool {
        name: "locks",
        meaning: "Waits for locks: by lock, with call sites and holders",
        properties: &[RECORDING],
        words: |arguments| of_recording(&["locks"], arguments, Vec::new()),
    },
    Tool {
        name: "requests",
        meaning: "Durations of requests: quantiles, and the parts of their time that make some of them slow",
        properties: &[RECORDING],
        words: |arguments| of_recording(&["requests"], arguments, Vec::new()),
    },
    Tool {
        name: "why",
        meaning: "Why a thread or a request took its time: the critical path through the threads that it waited for",
        properties: &[
            RECORDING,
            text("request", "Name of requests: the slowest is explained; NAME:2 is the next")
                .optional(),
            text(
                "thread",
                "Thread by its id or handle (t-…) [default: the command's first thread]",
            )
            .optional(),
        ],
        words: |arguments| {
            let mut options = arguments.option("request", "request");
            options.extend(arguments.option("thread", "tid"));
            of_recording(&["why"], arguments, options)
        },
    },
    Tool {
        name: "diff",
        meaning: "What became slower or faster between two recordings, with verdicts that chance does not explain",
        properties: &[
            text("before", "Path of the recording before"),
            text("after", "Path of the recording after"),
            text("of", "samples, waits, locks, wall or requests [default: samples]").optional(),
        ],
        words: |arguments| {
            let mut words = vec!["diff".to_owned()];
            match arguments.find("of").unwrap_or("samples") {
                "samples" => {}
                of @ ("waits" | "locks" | "wall" | "requests") => words.push(format!("--{of}")),
                other => return Err(format!("there is no difference of {other}")),
            }
            for side in ["before", "after"] {
                let path = arguments.get(side)?;
                // A name that looks like an option is one of a file here.
                words.push(if path.starts_with('-') {
                    format!("./{path}")
                } else {
                    path.to_owned()
                });
            }
            Ok(words)
        },
    },
    Tool {
        name: "sql",
        meaning: "Rows of a statement of SQLite over a recording's tables, as CSV: sample, sched, thread_state, wait, \
                  request, callsite, frame, mapping, process, thread, cgroup, loss; `SELECT name, sql FROM sqlite_schema` \
                  lists the views",
        properties: &[RECORDING, text("statement", "One statement")],
        words: |arguments| {
            arguments.get("statement")?;
            of_recording(&["query", "--csv"], arguments, arguments.option("statement", "command"))
        },
    },
];

impl Tool {
    /// As the protocol describes a tool.
    pub(super) fn description(&self) -> Value {
        let property = |of: &Property| {
            (of.name.to_owned(), json!({ "type": of.kind, "description": of.meaning }))
        };
        let properties: Map<String, Value> = self.properties.iter().map(property).collect();
        let required = self.properties.iter().filter(|of| of.is_required).map(|of| of.name);
        json!({
            "name": self.name,
            "description": self.meaning,
            "inputSchema": {
                "type": "object",
                "properties": properties,
                "required": required.collect::<Vec<_>>(),
                "additionalProperties": false,
            },
            "annotations": { "readOnlyHint": true },
        })
    }

    /// The arguments of whit.
    ///
    /// # Errors
    /// An argument is missing, unknown or wrong.
    pub(super) fn command(&self, arguments: &Arguments<'_>) -> Result<Vec<OsString>, String> {
        let given = arguments.0.as_object();
        let is_known = |name: &&String| self.properties.iter().any(|of| of.name == *name);
        if let Some(unknown) =
            given.iter().flat_map(|given| given.keys()).find(|name| !is_known(name))
        {
            return Err(format!("{} has no argument {unknown}", self.name));
        }
        for property in self.properties.iter().filter(|of| of.is_required) {
            arguments.get(property.name)?;
        }
        Ok((self.words)(arguments)?.into_iter().map(OsString::from).collect())
    }
}
