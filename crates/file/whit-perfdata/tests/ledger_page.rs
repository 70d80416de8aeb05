//! The tables of `docs/ledger.md` are those of the code. `WHIT_BLESS=1` writes them anew.

use std::fmt::Write;

use whit_perfdata::ledger::{
    BpfMeasurement, Field, GROUPS, PmiMeasurement, READER_FIELDS, Unit, fields,
};
use whit_testing::{assert_published, published};

const FILE: &str = "docs/ledger.md";

const BEGIN: &str = "<!-- tables -->\n";
const END: &str = "<!-- end of tables -->\n";

/// `3`, or `41–56, 58`.
fn numbers(numbers: &[usize]) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for &number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let text = |(first, last): &(usize, usize)| match first == last {
        true => first.to_string(),
        false => format!("{first}–{last}"),
    };
    runs.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// One row; `base` is where field 0 stands in the section.
fn row<T>(field: &Field<T>, member: Option<&str>, base: usize) -> String {
    let offset = field.numbers.first().map(|first| (base + 8 * first).to_string());
    let name = member.map_or(String::new(), |member| format!("{member}."));
    let json = match field.is_stored() {
        true => format!("`{name}{}`", field.name),
        false => String::new(),
    };
    format!(
        "| {} | {} | {json} | {} | {} | {}: {} |\n",
        numbers(field.numbers),
        offset.unwrap_or_default(),
        field.unit.name(),
        field.since,
        field.title,
        field.what,
    )
}

const HEAD: &str =
    "| number | offset | JSON | unit | since | content |\n|---|---|---|---|---|---|\n";

fn codes<T: Copy>(
    text: &mut String,
    known: &[T],
    name: fn(T) -> &'static str,
    reason: fn(T) -> Option<&'static str>,
) {
    text.push_str("\n| code | JSON | reason |\n|---|---|---|\n");
    for (code, one) in known.iter().enumerate() {
        let reason = reason(*one).unwrap_or("measured");
        writeln!(text, "| {code} | `{}` | {reason} |", name(*one)).unwrap();
    }
}

fn tables() -> String {
    let mut text = String::new();
    for group in &GROUPS {
        write!(text, "\n## {}\n\n{HEAD}", group.title).unwrap();
        for field in group.fields {
            text.push_str(&row(field, group.member, 8));
        }
        if group.fields.iter().any(|field| field.unit == Unit::Code) {
            text.push_str(
                "\nWhere the code is a reason why nothing was measured, JSON has `null` for the figures. \
                 Codes that are not listed are reasons of a newer version.\n",
            );
        }
        match group.member {
            Some("pmi") => codes(
                &mut text,
                &PmiMeasurement::KNOWN,
                PmiMeasurement::name,
                PmiMeasurement::reason,
            ),
            Some("bpf") => codes(
                &mut text,
                &BpfMeasurement::KNOWN,
                BpfMeasurement::name,
                BpfMeasurement::reason,
            ),
            _ => {}
        }
        for field in group.fields {
            let Some(name) = field.element else { continue };
            write!(text, "\nElements of `{}`; JSON has those that are not zero:\n\n| number | JSON |\n|---|---|\n", field.name).unwrap();
            for (index, number) in field.numbers.iter().enumerate() {
                writeln!(text, "| {number} | `{}` |", name(index)).unwrap();
            }
        }
    }
    write!(text, "\n## Readers\n\nOffsets are those within a reader's fields.\n\n{HEAD}").unwrap();
    for field in READER_FIELDS {
        text.push_str(&row(field, Some("readers[]"), 0));
    }
    text.push('\n');
    text
}

#[test]
fn the_reference_page_lists_the_fields_of_the_table() {
    let page = published(FILE);
    let (before, rest) = page.split_once(BEGIN).expect("the beginning of the tables");
    let (_, after) = rest.split_once(END).expect("the end of the tables");
    assert_published(FILE, &format!("{before}{BEGIN}{}{END}{after}", tables()));
}

#[test]
fn the_page_describes_each_field() {
    for field in fields() {
        assert!(field.what.ends_with('.') && !field.title.is_empty(), "{}", field.name);
        assert!(field.unit != Unit::Code || field.is_stored(), "{}", field.name);
    }
}
