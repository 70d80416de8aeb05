//! One tracepoint's `format` file: where its fields are and how the kernel would print them.

/// Where a field's bytes are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FieldLocation {
    /// At the field's offset.
    Fixed,
    /// `__data_loc`: the field holds the offset (low half) and the length (high half) of the bytes.
    Dynamic,
    /// `__rel_loc`: as `Dynamic`, the offset counted from the field's end.
    RelativeDynamic,
}

/// A field of a tracepoint's record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceField {
    /// As the `format` file has it: `prev_comm`.
    pub name: Box<str>,
    /// C type as the kernel wrote it, with brackets for arrays: `unsigned long[6]`.
    pub c_type: Box<str>,
    /// Where it stands in the record.
    pub offset: usize,
    /// Size in the record; zero for all that is left of it.
    pub size_bytes: usize,
    /// Signed integer, or array of such.
    pub is_signed: bool,
    /// Array, of fixed or of recorded length.
    pub is_array: bool,
    /// Where the bytes are.
    pub location: FieldLocation,
    /// Size of an array's element; zero where the type does not tell.
    pub element_size_bytes: usize,
}

impl TraceField {
    /// Array of characters or bytes.
    pub fn is_string(&self) -> bool {
        let old_style = self.location != FieldLocation::Fixed && self.size_bytes == 2;
        let bytes = ["char", "u8", "s8"].iter().any(|name| self.c_type.contains(name));
        old_style || (self.is_array && bytes)
    }

    /// Whether the C type is `long` or `long long`, signed or not.
    pub fn is_long(&self) -> bool {
        self.c_type.contains("long")
    }

    /// Whether the C type ends in `*`.
    pub fn is_pointer(&self) -> bool {
        self.c_type.contains('*')
    }
}

/// A tracepoint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceEvent {
    /// System, such as `sched`.
    pub system: Box<str>,
    /// Name, such as `sched_switch`.
    pub name: Box<str>,
    /// Id: `perf_event_attr.config` of its events.
    pub id: u64,
    /// Fields that all tracepoints have.
    pub common_fields: Vec<TraceField>,
    /// Its own fields.
    pub fields: Vec<TraceField>,
    /// The value of `print fmt:`: a format string and its arguments, in C.
    pub print_fmt: Box<str>,
}

/// Why a `format` file cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EventFormatError {
    /// A line that every format has is not there.
    #[error("its format has no line `{line}`")]
    Missing {
        /// How the line starts.
        line: &'static str,
    },
    /// A field's line is not understood.
    #[error("its format has a field that cannot be read: `{line}`")]
    Field {
        /// As the file has it.
        line: String,
    },
}

impl TraceEvent {
    /// Reads the text of a `format` file of the given system.
    ///
    /// # Errors
    /// The text has no name, no id, or a field that is not understood.
    pub fn parse(
        system: &str,
        text: &str,
        long_size_bytes: u8,
    ) -> Result<TraceEvent, EventFormatError> {
        let (head, print_fmt) = text.split_once("\nprint fmt:").unwrap_or((text, ""));
        let value = |line: &'static str| {
            let found = head.lines().find_map(|l| l.trim().strip_prefix(line));
            found.map(str::trim).ok_or(EventFormatError::Missing { line })
        };
        let name = value("name:")?;
        let id = value("ID:")?.parse().map_err(|_| EventFormatError::Missing { line: "ID:" })?;
        let (_, fields) = head.split_once("format:").unwrap_or((head, ""));
        let mut parts = [Vec::new(), Vec::new()];
        let mut part = 0;
        for line in fields.trim_start_matches('\n').lines().map(str::trim) {
            if line.is_empty() {
                // An empty line parts the fields of all tracepoints from the event's own.
                part = 1;
            } else {
                let field = parse_field(line, usize::from(long_size_bytes));
                let bad = || EventFormatError::Field { line: line.to_owned() };
                parts[part].push(field.ok_or_else(bad)?);
            }
        }
        let [common_fields, fields] = parts;
        Ok(TraceEvent {
            system: system.into(),
            name: name.into(),
            id,
            common_fields,
            fields,
            print_fmt: print_fmt.trim().into(),
        })
    }

    /// `system:name`.
    pub fn full_name(&self) -> String {
        format!("{}:{}", self.system, self.name)
    }

    /// The field of that name.
    pub fn field(&self, name: &str) -> Option<&TraceField> {
        self.common_fields.iter().chain(&self.fields).find(|field| &*field.name == name)
    }
}

/// `field:TYPE NAME; offset:N; size:N; signed:N;`; old kernels leave `signed` out.
fn parse_field(line: &str, long_size_bytes: usize) -> Option<TraceField> {
    let mut parts = line.split(';').map(str::trim);
    let declaration = parts.next()?.strip_prefix("field:")?;
    let mut number = |key: &str| parts.next()?.strip_prefix(key)?.trim().parse::<usize>().ok();
    let (offset, size_bytes) = (number("offset:")?, number("size:")?);
    let is_signed = number("signed:").is_some_and(|signed| signed != 0);
    let (c_type, name, len) = parse_declaration(declaration.trim())?;
    let location = match c_type.split_whitespace().next() {
        Some("__data_loc") => FieldLocation::Dynamic,
        Some("__rel_loc") => FieldLocation::RelativeDynamic,
        _ => FieldLocation::Fixed,
    };
    let mut field = TraceField {
        name: name.into(),
        c_type: c_type.into(),
        offset,
        size_bytes,
        is_signed,
        is_array: len.is_some(),
        location,
        element_size_bytes: size_bytes,
    };
    if let Some(len) = len {
        field.element_size_bytes = match (location, len) {
            (FieldLocation::Fixed, 1..) => size_bytes / len,
            _ => element_size(&field.c_type, long_size_bytes),
        };
    }
    Some(field)
}

/// Type with brackets, name, and for arrays the number of elements, zero where it is not a number.
/// Both `char comm[16]` and `__data_loc char[] name` occur.
fn parse_declaration(text: &str) -> Option<(String, &str, Option<usize>)> {
    let Some((before, rest)) = text.split_once('[') else {
        let (c_type, name) = split_last_word(text)?;
        return Some((c_type.to_owned(), name, None));
    };
    let (inside, after) = rest.rsplit_once(']')?;
    let len = inside.trim().parse().unwrap_or(0);
    let (before, after) = (before.trim(), after.trim());
    if after.is_empty() {
        let (c_type, name) = split_last_word(before)?;
        Some((format!("{c_type}[{inside}]"), name, Some(len)))
    } else {
        Some((format!("{before}[{inside}]"), after, Some(len)))
    }
}

fn split_last_word(text: &str) -> Option<(&str, &str)> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let (c_type, name) = text.split_at(text.trim_end_matches(is_word).len());
    (!name.is_empty() && !c_type.trim().is_empty()).then_some((c_type.trim(), name))
}

/// Size of an element by the type's name; zero if it is no plain integer.
fn element_size(c_type: &str, long_size_bytes: usize) -> usize {
    let element = c_type.split('[').next().unwrap_or_default();
    let mut words = element.split_whitespace();
    let longs = words.clone().filter(|word| *word == "long").count();
    match (longs, words.next_back()) {
        (1, _) => long_size_bytes,
        (2.., _) => 8,
        (_, Some("char" | "bool" | "u8" | "s8" | "__u8" | "__s8" | "uint8_t" | "int8_t")) => 1,
        (_, Some("short" | "u16" | "s16" | "__u16" | "__s16" | "uint16_t" | "int16_t")) => 2,
        (_, Some("int" | "unsigned" | "u32" | "s32" | "__u32" | "__s32")) => 4,
        (_, Some("uint32_t" | "int32_t")) => 4,
        (_, Some("u64" | "s64" | "__u64" | "__s64" | "uint64_t" | "int64_t")) => 8,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(line: &str) -> TraceField {
        parse_field(line, 8).unwrap()
    }

    #[test]
    fn plain_and_pointer_fields() {
        let f = field("field:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;");
        assert_eq!((&*f.c_type, &*f.name, f.size_bytes), ("unsigned short", "common_type", 2));
        assert!(!f.is_signed && !f.is_array && !f.is_long());
        let f = field("field:const char * filename; offset:24; size:8; signed:0;");
        assert_eq!((&*f.c_type, &*f.name), ("const char *", "filename"));
        assert!(f.is_pointer() && !f.is_string());
        let f = field("field:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;");
        assert!(f.is_signed);
    }

    #[test]
    fn arrays_of_fixed_length() {
        let f = field("field:char comm[16];\toffset:8;\tsize:16;\tsigned:0;");
        assert_eq!((&*f.c_type, &*f.name, f.element_size_bytes), ("char[16]", "comm", 1));
        assert!(f.is_string() && f.is_array && f.location == FieldLocation::Fixed);
        let f = field("field:unsigned long args[6];\toffset:16;\tsize:48;\tsigned:0;");
        assert_eq!(f.element_size_bytes, 8);
        let f = field("field:u32 words[A_CONSTANT];\toffset:16;\tsize:48;\tsigned:0;");
        assert_eq!((f.is_array, f.element_size_bytes), (true, 4));
    }

    #[test]
    fn arrays_of_recorded_length() {
        let f = field("field:__data_loc char[] name;\toffset:8;\tsize:4;\tsigned:0;");
        assert_eq!((&*f.c_type, &*f.name), ("__data_loc char[]", "name"));
        assert!(f.is_string() && f.location == FieldLocation::Dynamic);
        let f = field("field:__rel_loc unsigned long[] mask;\toffset:8;\tsize:4;\tsigned:0;");
        assert_eq!(f.location, FieldLocation::RelativeDynamic);
        assert_eq!(f.element_size_bytes, 8);
    }

    #[test]
    fn lines_that_are_no_field_are_refused() {
        for line in ["", "field:int;", "field:int x; offset:1;", "int x; offset:1; size:4;"] {
            assert_eq!(parse_field(line, 8), None, "{line}");
        }
        let text = "name: a\nID: 1\nformat:\n\tfield:x;\n\nprint fmt: \"\"\n";
        assert!(TraceEvent::parse("s", text, 8).unwrap_err().to_string().contains("`field:x;`"));
        let text = "name: a\nID: -1\nformat:\n";
        assert!(TraceEvent::parse("s", text, 8).unwrap_err().to_string().contains("`ID:`"));
    }
}
