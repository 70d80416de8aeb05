//! The ledger as a JSON object, by the table of its fields.

use std::borrow::Cow;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use whit_perfdata::ledger::{Field, GROUPS, Group, Ledger, READER_FIELDS, ReaderLedger, Unit};

/// The ledger; each group with a name of its own is an object within.
#[derive(Clone, Copy, Debug)]
pub struct LedgerJson<'a> {
    /// All its groups, with zeros for figures that were not measured.
    pub ledger: &'a Ledger,
    /// How members are called.
    pub names: Names,
}

/// How members are called.
#[derive(Clone, Copy, Debug)]
pub enum Names {
    /// `wall_ns`, as in the table.
    Snake,
    /// `wallNs`, as JavaScript has them.
    Camel,
}

impl Names {
    fn of(self, name: &'static str) -> Cow<'static, str> {
        match self {
            Names::Snake => name.into(),
            Names::Camel => camel(name).into(),
        }
    }
}

fn camel(name: &str) -> String {
    let mut words = name.split('_');
    let mut camel = words.next().unwrap_or_default().to_owned();
    for word in words {
        let (first, rest) = word.split_at(word.len().min(1));
        camel.push_str(&first.to_ascii_uppercase());
        camel.push_str(rest);
    }
    camel
}

impl Serialize for LedgerJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let LedgerJson { ledger, names } = *self;
        let mut map = serializer.serialize_map(None)?;
        for group in &GROUPS {
            let members = Members { group, ledger, names };
            match group.member {
                None => members.write(&mut map)?,
                Some(member) => {
                    map.serialize_entry(member, &group.is_reported(ledger).then_some(members))?;
                }
            }
        }
        let readers = ledger.readers.iter().map(|reader| Reader { reader, names });
        map.serialize_entry("readers", &readers.collect::<Vec<_>>())?;
        map.end()
    }
}

/// The fields of a group.
struct Members<'a> {
    group: &'static Group,
    ledger: &'a Ledger,
    names: Names,
}

impl Members<'_> {
    fn write<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        let Members { group, ledger, names } = *self;
        for field in group.fields.iter().filter(|field| field.is_stored()) {
            let name = names.of(field.name);
            if let (Unit::Code, Some(how)) = (field.unit, group.measurement(ledger)) {
                map.serialize_entry(&name, how.name)?;
                map.serialize_entry("reason", &how.reason)?;
            } else if field.element.is_some() {
                map.serialize_entry(&name, &Elements { field, ledger })?;
            } else {
                map.serialize_entry(&name, &group.figure(field, ledger).ok())?;
            }
        }
        Ok(())
    }
}

impl Serialize for Members<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.write(&mut map)?;
        map.end()
    }
}

/// The elements that are not zero, by name.
struct Elements<'a> {
    field: &'static Field<Ledger>,
    ledger: &'a Ledger,
}

impl Serialize for Elements<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.field.elements(self.ledger))
    }
}

struct Reader<'a> {
    reader: &'a ReaderLedger,
    names: Names,
}

impl Serialize for Reader<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let figure =
            |field: &'static Field<_>| (self.names.of(field.name), field.value(self.reader));
        serializer.collect_map(READER_FIELDS.iter().map(figure))
    }
}

#[cfg(test)]
mod schemas {
    use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
    use serde_json::{Map, Value, json};

    use super::*;

    impl JsonSchema for LedgerJson<'_> {
        fn schema_name() -> Cow<'static, str> {
            "Ledger".into()
        }

        fn json_schema(_: &mut SchemaGenerator) -> Schema {
            let mut members = Map::new();
            for group in &GROUPS {
                let own = members_of(group);
                match group.member {
                    None => members.extend(own),
                    Some(name) => {
                        let kind = match group.is_reported(&Ledger::default()) {
                            true => json!("object"),
                            false => json!(["object", "null"]),
                        };
                        members.insert(name.into(), object(group.title, kind, own));
                    }
                }
            }
            let reader =
                READER_FIELDS.iter().map(|field| (field.name.into(), number(field, false)));
            let reader = object("A reader's share", json!("object"), reader.collect());
            members.insert("readers".into(), json!({ "type": "array", "items": reader }));
            let required: Vec<_> = members.keys().cloned().collect();
            json_schema!({
                "description": "What recording cost; docs/ledger.md lists the members.",
                "type": "object", "properties": members, "required": required,
            })
        }
    }

    fn object(description: &str, kind: Value, members: Map<String, Value>) -> Value {
        let required: Vec<_> = members.keys().cloned().collect();
        json!({
            "description": description, "type": kind, "properties": members, "required": required,
        })
    }

    fn members_of(group: &Group) -> Map<String, Value> {
        let mut members = Map::new();
        for field in group.fields.iter().filter(|field| field.is_stored()) {
            let member = if field.unit == Unit::Code {
                let reason = "Why nothing was measured.";
                let text = json!({ "description": reason, "type": ["string", "null"] });
                members.insert("reason".into(), text);
                json!({ "description": field.what, "type": "string" })
            } else if field.element.is_some() {
                let count = json!({ "type": "integer", "minimum": 0 });
                json!({
                    "description": field.what, "type": "object", "additionalProperties": count,
                })
            } else {
                number(field, group.can_fail(field))
            };
            members.insert(field.name.into(), member);
        }
        members
    }

    fn number<T>(field: &Field<T>, can_fail: bool) -> Value {
        let kind = if can_fail { json!(["integer", "null"]) } else { json!("integer") };
        json!({ "description": field.what, "type": kind, "minimum": 0 })
    }

    #[test]
    fn a_ledger_has_the_members_of_its_schema_and_no_others() {
        fn keys(value: &Value) -> Vec<&String> {
            value.as_object().expect("an object").keys().collect()
        }
        let mut ledger = Ledger { readers: vec![ReaderLedger::default()], ..Ledger::default() };
        ledger.stacks.walks = 1;
        let json = serde_json::to_value(LedgerJson { ledger: &ledger, names: Names::Snake });
        let (json, schema) = (json.unwrap(), schemars::schema_for!(LedgerJson<'_>).to_value());
        let schema = &schema["properties"];
        assert_eq!(keys(&json), keys(schema));
        for group in GROUPS.iter().filter_map(|group| group.member) {
            assert_eq!(keys(&json[group]), keys(&schema[group]["properties"]), "{group}");
        }
        assert_eq!(keys(&json["readers"][0]), keys(&schema["readers"]["items"]["properties"]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_page_are_those_of_the_table_in_camel_case() {
        assert_eq!(camel("wall_ns"), "wallNs");
        assert_eq!(camel("ring_size_bytes"), "ringSizeBytes");
        assert_eq!(camel("rings"), "rings");
    }
}
