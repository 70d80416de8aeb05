//! samply's names: its profile has addresses alone, and its server names them, as it does for the browser.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Options;
use super::built::Built;
use super::judge::{Frame, Sample};
use super::run::run;
use crate::error::Error;
use crate::running::Running;

/// How long a server may take until it has an address, and how often it is looked at.
const START_MAX: Duration = Duration::from_secs(30);
const START_INTERVAL: Duration = Duration::from_millis(20);
/// The server takes the first of a hundred ports that is free.
const PORTS: &str = "47100+";

/// Has samply convert the recording, and asks its server for the names.
pub(super) fn read(data: &Path, built: &Built, options: &Options) -> Result<Vec<Sample>, String> {
    let file = |name: &str| built.program.with_file_name(name);
    let profile = file("samply.json");
    let mut import = Command::new("samply");
    import.args(["import", "--save-only", "-o"]).arg(&profile).arg(data);
    run(import, &file("samply.txt"), built, options)?;
    let text = fs::read(&profile).map_err(|error| format!("{}: {error}", profile.display()))?;
    let text =
        serde_json::from_slice(&text).map_err(|error| format!("samply's profile: {error}"))?;
    let name = built.program.file_name().unwrap_or_default().to_string_lossy();
    let (library, addresses) = addresses(&text, &name).ok_or("its profile is of another form")?;
    let server = Server::start(&profile, &file("samply-server.txt"))?;
    let stacks: Vec<_> = addresses.iter().map(|address| json!([[0, address]])).collect();
    let job = json!({ "jobs": [{ "memoryMap": [library], "stacks": stacks }] });
    let url = format!("http://{}/{}/symbolicate/v5", server.address, server.token);
    let answer = post(&url, &job.to_string()).map_err(|error| format!("samply: {error}"))?;
    let answer = serde_json::from_slice(&answer).map_err(|error| format!("samply: {error}"))?;
    Ok(samples(&answer, &addresses, built.image_base))
}

/// Gives the body of the answer, of any size.
fn post(url: &str, json: &str) -> Result<Vec<u8>, ureq::Error> {
    ureq::post(url).send(json)?.body_mut().with_config().limit(u64::MAX).read_to_vec()
}

/// The name and the id of the program, and the innermost address of each of its samples.
pub(super) fn addresses(profile: &Value, program: &str) -> Option<(Value, Vec<u64>)> {
    let libraries = profile["libs"].as_array()?;
    let own = libraries.iter().position(|library| library["name"] == program)?;
    let library = json!([libraries[own]["debugName"], libraries[own]["breakpadId"]]);
    let mut addresses = Vec::new();
    for thread in profile["threads"].as_array()? {
        let at = |table: &str, column: &str, index: u64| {
            thread[table][column].get(usize::try_from(index).ok()?)?.as_u64()
        };
        for stack in thread["samples"]["stack"].as_array()? {
            let address = stack.as_u64().and_then(|stack| {
                let frame = at("stackTable", "frame", stack)?;
                let resource = at("funcTable", "resource", at("frameTable", "func", frame)?)?;
                let library = at("resourceTable", "lib", resource)?;
                (library == own as u64).then(|| at("frameTable", "address", frame))?
            });
            addresses.extend(address);
        }
    }
    Some((library, addresses))
}

/// The server's frames, by sample. It states addresses from the first one of the image.
pub(super) fn samples(answer: &Value, addresses: &[u64], image_base: u64) -> Vec<Sample> {
    let stacks = answer["results"][0]["stacks"].as_array().map_or(&[][..], Vec::as_slice);
    let mut known: HashMap<u64, Vec<Frame>> = HashMap::new();
    for (address, stack) in addresses.iter().zip(stacks) {
        known.entry(*address).or_insert_with(|| frames(&stack[0]));
    }
    let frames = |address: &u64| known.get(address).cloned().unwrap_or_default();
    let sample = |address| Sample { address: address + image_base, frames: frames(&address) };
    addresses.iter().copied().map(sample).collect()
}

fn frames(answer: &Value) -> Vec<Frame> {
    let frame = |value: &Value, is_inlined| {
        let text = |field: &str| value[field].as_str().unwrap_or_default().to_owned();
        let line = value["line"].as_u64().and_then(|line| u32::try_from(line).ok());
        Frame { function: text("function"), is_inlined, line: line.map(|it| (text("file"), it)) }
    };
    let inlined = answer["inlines"].as_array().into_iter().flatten();
    inlined.map(|value| frame(value, true)).chain([frame(answer, false)]).collect()
}

/// `samply load`, which ends with this.
struct Server {
    running: Running,
    address: String,
    token: String,
}

impl Server {
    /// Waits until it has an address.
    fn start(profile: &Path, output: &Path) -> Result<Server, String> {
        let failed = |error: Error| format!("samply's server: {error}");
        let mut command = Command::new("samply");
        command.args(["load", "--no-open", "-P", PORTS]).arg(profile);
        if let Some(place) = profile.parent() {
            command.env("HOME", place).env("XDG_CACHE_HOME", place.join("cache"));
        }
        let running = Running::start(command, output).map_err(failed)?;
        let mut server = Server { running, address: String::new(), token: String::new() };
        let begin = Instant::now();
        while begin.elapsed() < START_MAX {
            let said = fs::read_to_string(output).unwrap_or_default();
            if let Some((address, token)) = served(&said) {
                (server.address, server.token) = (address, token);
                return Ok(server);
            }
            if server.running.has_ended().map_err(failed)? {
                return Err(format!("samply's server ended: {}", said.trim()));
            }
            std::thread::sleep(START_INTERVAL);
        }
        Err("samply's server has no address".to_owned())
    }
}

/// Host and port, and the token, from its output.
pub(super) fn served(said: &str) -> Option<(String, String)> {
    let (_, server) = said.split_once("symbolServer=http%3A%2F%2F")?;
    let (server, _) = server.split_once('\n')?;
    let (address, token) = server.split_once("%2F")?;
    Some((address.replace("%3A", ":"), token.to_owned()))
}
