//! Prints the report of this machine: `cargo run -p whit-doctor --example doctor [-- --json]`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let report = whit_doctor::run(&mut whit_doctor::Machine::this());
    match std::env::args().nth(1).as_deref() {
        Some("--json") => print!("{}", whit_doctor::render_json(&report)?),
        Some(other) => return Err(format!("unknown argument {other}: --json or none").into()),
        None => print!("{}", whit_doctor::render_text(&report)),
    }
    Ok(())
}
