//! `whit mcp`: the answers of the command line, over the Model Context Protocol.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::exports::consumers;
use crate::support::check;
use crate::support::tools::{repository, text, whit};

fn recording(name: &str) -> PathBuf {
    repository().join(format!("tests/recordings/{name}/{name}.data"))
}

/// A server that a test talks to.
struct Server {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    last: u64,
}

impl Server {
    fn start(options: &[&str]) -> Server {
        let mut command = whit();
        command.arg("mcp").args(options).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("start whit");
        let (input, output) = (child.stdin.take(), child.stdout.take().expect("a pipe"));
        Server { child, input, output: BufReader::new(output), last: 0 }
    }

    fn send(&mut self, line: &str) {
        let input = self.input.as_mut().expect("not closed");
        writeln!(input, "{line}").expect("write to whit");
    }

    fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("read from whit");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.last += 1;
        let id = self.last;
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.send(&message.to_string());
        let reply = self.receive();
        assert_eq!((&reply["jsonrpc"], &reply["id"]), (&json!("2.0"), &json!(id)), "{reply}");
        reply
    }

    /// The text of a tool's answer, and whether it is an error.
    fn call(&mut self, name: &str, arguments: &Value) -> (String, bool) {
        let reply = self.ask("tools/call", &json!({ "name": name, "arguments": arguments }));
        let [part] = &reply["result"]["content"].as_array().expect("content")[..] else {
            panic!("{reply}")
        };
        let text = part["text"].as_str().expect("a text").to_owned();
        (text, reply["result"]["isError"] == true)
    }

    fn end(mut self) {
        drop(self.input.take());
        assert!(self.child.wait().expect("wait").success());
    }
}

fn printed(arguments: &[&str], path: &Path) -> String {
    text(whit().args(arguments).arg("-i").arg(path))
}

#[test]
fn answers_of_tools_are_those_of_the_command_line() {
    let mut server = Server::start(&[]);
    let hello = server.ask("initialize", &json!({ "protocolVersion": "2025-06-18" }));
    assert_eq!(hello["result"]["protocolVersion"], "2025-06-18");
    assert_eq!(hello["result"]["serverInfo"]["name"], "whit");
    // A notification has no reply: the next one is that of the next request.
    server.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    assert_eq!(server.ask("ping", &json!({}))["result"], json!({}));
    let (waits, requests) = (recording("waits"), recording("requests"));
    let brief = server.call("brief", &json!({ "recording": waits }));
    assert_eq!(brief, (printed(&["report", "--brief"], &waits), false));
    let short = server.call("brief", &json!({ "recording": waits, "bytes": 900 }));
    assert_eq!(short, (printed(&["report", "--brief=900"], &waits), false));
    let handle = |letter: char| {
        let found = brief.0.split_whitespace().find(|word| word.starts_with(&format!("{letter}-")));
        found.expect("a handle").to_owned()
    };
    let (function, wait, thread) = (handle('f'), handle('w'), handle('t'));
    for (name, mut arguments, words, path) in [
        (
            "callers",
            json!({ "function": function }),
            vec!["report", "--callers", &function],
            &waits,
        ),
        (
            "callees",
            json!({ "function": function }),
            vec!["report", "--callees", &function],
            &waits,
        ),
        ("wait", json!({ "wait": wait }), vec!["switches", "--wait", &wait], &waits),
        ("locks", json!({}), vec!["locks"], &waits),
        ("why", json!({ "thread": thread }), vec!["why", "--tid", &thread], &waits),
        ("why", json!({ "request": "call" }), vec!["why", "--request", "call"], &requests),
        ("requests", json!({}), vec!["requests"], &requests),
        (
            "sql",
            json!({ "statement": "SELECT COUNT(*) FROM wait" }),
            vec!["query", "--csv", "-c", "SELECT COUNT(*) FROM wait"],
            &waits,
        ),
    ] {
        arguments["recording"] = json!(path);
        assert_eq!(server.call(name, &arguments), (printed(&words, path), false), "{name}");
    }
    let (diff, is_error) =
        server.call("diff", &json!({ "before": waits, "after": waits, "of": "waits" }));
    assert!(!is_error && diff.contains("0 rows with a difference"), "{diff}");
    server.end();
}

#[test]
fn wrong_messages_and_arguments_name_the_reason() {
    let mut server = Server::start(&["--max-bytes", "1024"]);
    for (line, code) in [
        ("{", -32700),
        ("[]", -32600),
        (r#"{"jsonrpc":"2.0","id":7}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":7,"method":"server/discover"}"#, -32601),
        (r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"record"}}"#, -32602),
    ] {
        server.send(line);
        assert_eq!(server.receive()["error"]["code"], code, "{line}");
    }
    let waits = recording("waits");
    for (name, arguments, expected) in [
        ("brief", json!({}), "the argument recording is missing"),
        ("brief", json!({ "recording": waits, "output": "x" }), "brief has no argument output"),
        ("brief", json!({ "recording": "nowhere.data" }), "nowhere.data"),
        ("brief", json!({ "recording": "--output=x" }), "--output=x"),
        ("wait", json!({ "recording": waits, "wait": "w-1-abc" }), "w-1-abc"),
        ("diff", json!({ "before": waits, "after": waits, "of": "luck" }), "no difference of luck"),
        ("diff", json!({ "before": "--html=x", "after": waits }), "./--html=x"),
        ("sql", json!({ "recording": waits, "statement": "SELECT" }), "incomplete input"),
        (
            "sql",
            json!({ "recording": waits, "statement": "ATTACH 'x.db' AS x" }),
            "too many attached",
        ),
        (
            "sql",
            json!({ "recording": waits, "statement": "VACUUM INTO 'x.db'" }),
            "too many attached",
        ),
    ] {
        let (text, is_error) = server.call(name, &arguments);
        assert!(is_error && text.contains(expected), "{name} {arguments}: {text}");
    }
    assert!(!Path::new("x.db").exists());
    // A long answer ends with a whole line, and says so.
    let statement = json!({ "recording": waits, "statement": "SELECT ts FROM sample" });
    let (rows, is_error) = server.call("sql", &statement);
    let (shown, note) = rows.trim_end().rsplit_once('\n').expect("lines");
    assert!(!is_error && shown.len() < 1024, "{rows}");
    let all = printed(&["query", "--csv", "-c", "SELECT ts FROM sample"], &waits);
    let left_out = all.len() - shown.len() - 1;
    assert!(all.starts_with(shown) && note.contains(&format!("… {left_out} bytes")), "{note}");
    server.end();
}

#[test]
fn the_published_client_gets_answers() {
    check("the_published_client_gets_answers", || {
        let waits = recording("waits");
        // By the client that the authors of the protocol publish.
        let mut client = consumers::python("ask_mcp.py")?;
        let program = whit().get_program().to_owned();
        let said = text(client.arg(program).arg(&waits));
        let said: Value = serde_json::from_str(&said).expect("JSON");
        assert_eq!(said["text"], printed(&["report", "--brief"], &waits));
        let tools = said["tools"].as_array().expect("tools").iter();
        let tools: Vec<_> = tools.map(|name| name.as_str().expect("a name")).collect();
        assert!(["brief", "why", "sql"].iter().all(|name| tools.contains(name)), "{tools:?}");
        Ok(())
    });
}

#[test]
fn a_terminal_gets_the_purpose_of_the_server() {
    let mut script = Command::new("script");
    let program = whit().get_program().to_owned();
    let command = format!("{} mcp", Path::new(&program).display());
    let said = text(script.args(["-qec", &format!("{command}; echo code $?"), "/dev/null"]));
    assert!(said.contains("as the command of a server") && said.contains("code 2"), "{said}");
}
