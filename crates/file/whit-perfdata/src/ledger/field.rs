//! How a field of the ledger is described, and the macro that the table is written in.

use super::Ledger;
use super::kernel_side::{BpfMeasurement, PmiMeasurement};

/// One field of the ledger, or of a reader's share in it: where the file has it, and how it is shown.
#[derive(Debug)]
pub struct Field<T: 'static> {
    /// Numbers of its words in the file, counted from 0: one, or one for each element of an array. None
    /// where the field is computed from others.
    pub numbers: &'static [usize],
    /// Name in JSON, within the object of its group.
    pub name: &'static str,
    /// Unit of the numbers.
    pub unit: Unit,
    /// The version of whit that was the first to record it.
    pub since: &'static str,
    /// Its line in `whit report --ledger`.
    pub line: Line,
    /// Name on the page and in `docs/ledger.md`.
    pub title: &'static str,
    /// Its meaning, in a sentence.
    pub what: &'static str,
    /// Name in JSON of an array's element.
    pub element: Option<fn(usize) -> &'static str>,
    pub(super) word: fn(&T, usize) -> u64,
    pub(super) set_word: fn(&mut T, usize, u64),
}

/// The unit of a field's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Ns,
    /// Multiples of 1; output scales them to KiB and MiB.
    Bytes,
    /// A number of things.
    Count,
    /// One of the codes that `docs/ledger.md` lists: how the figures of the group were measured, or why not.
    Code,
}

/// Where `whit report --ledger` shows a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// In a line that begins so.
    Always(&'static str),
    /// In a line that begins so, if the field of that name is not zero.
    If(&'static str, &'static str),
    /// Likewise; behind the figure stands the note.
    Noted(&'static str, &'static str, &'static str),
    /// In the line of another field, or not at all.
    Elsewhere,
}

/// Fields that belong together.
#[derive(Debug)]
pub struct Group {
    /// The member of the JSON ledger that holds them as an object; `None` for members of the ledger itself.
    pub member: Option<&'static str>,
    /// Heading in `docs/ledger.md`.
    pub title: &'static str,
    /// The fields, in the order in which they are shown.
    pub fields: &'static [Field<Ledger>],
    /// Whether all figures of the group can be zero because nothing of the kind was done.
    pub(super) is_optional: bool,
    /// How the figures were measured, where that can fail.
    pub(super) measurement: Option<fn(&Ledger) -> Measurement>,
    /// Fields that are known without the measurement.
    pub(super) known: &'static [&'static str],
}

/// How the figures of a group were measured.
#[derive(Clone, Copy, Debug)]
pub struct Measurement {
    /// A name for programs; never changes.
    pub name: &'static str,
    /// Why there are no figures; `None` where there are.
    pub reason: Option<&'static str>,
}

impl Group {
    /// Whether the ledger has figures for the group, or the group is always shown.
    pub fn is_reported(&self, ledger: &Ledger) -> bool {
        let words = |field: &Field<Ledger>| {
            (0..field.numbers.len()).any(|index| (field.word)(ledger, index) > 0)
        };
        !self.is_optional || self.fields.iter().any(words)
    }

    /// How the figures were measured, where that can fail.
    pub fn measurement(&self, ledger: &Ledger) -> Option<Measurement> {
        self.measurement.map(|measurement| measurement(ledger))
    }

    /// Whether there are ledgers in which the figure of a field was not measured.
    pub fn can_fail(&self, field: &Field<Ledger>) -> bool {
        self.measurement.is_some() && !self.known.contains(&field.name)
    }

    /// The figure of a field of the group; the reason where it was not measured.
    ///
    /// # Errors
    /// Why it was not measured.
    pub fn figure(&self, field: &Field<Ledger>, ledger: &Ledger) -> Result<u64, &'static str> {
        let reason = self.measurement(ledger).and_then(|measurement| measurement.reason);
        match reason.filter(|_| !self.known.contains(&field.name)) {
            Some(reason) => Err(reason),
            None => Ok(field.value(ledger)),
        }
    }
}

impl<T> Field<T> {
    /// The figure; of an array, that of its first element.
    pub fn value(&self, of: &T) -> u64 {
        (self.word)(of, 0)
    }

    /// The elements of an array that are not zero, by name; nothing where the field is no array.
    pub fn elements<'a>(&'a self, of: &'a T) -> impl Iterator<Item = (&'static str, u64)> + 'a {
        let named = self.element.into_iter().flat_map(move |name| {
            (0..self.numbers.len()).map(move |index| (name(index), (self.word)(of, index)))
        });
        named.filter(|(_, value)| *value > 0)
    }

    /// Whether the file has it.
    pub fn is_stored(&self) -> bool {
        !self.numbers.is_empty()
    }
}

impl Unit {
    /// Its name in `docs/ledger.md` and in the page's data.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Ns => "ns",
            Unit::Bytes => "bytes",
            Unit::Count => "count",
            Unit::Code => "code",
        }
    }
}

/// A value that one or several words of the file hold.
pub(super) trait Words {
    /// How many words it takes.
    const COUNT: usize;
    fn word(&self, index: usize) -> u64;
    fn set_word(&mut self, index: usize, word: u64);
}

impl Words for u64 {
    const COUNT: usize = 1;

    fn word(&self, _index: usize) -> u64 {
        *self
    }

    fn set_word(&mut self, _index: usize, word: u64) {
        *self = word;
    }
}

impl<const N: usize> Words for [u64; N] {
    const COUNT: usize = N;

    fn word(&self, index: usize) -> u64 {
        self[index]
    }

    fn set_word(&mut self, index: usize, word: u64) {
        self[index] = word;
    }
}

impl Words for PmiMeasurement {
    const COUNT: usize = 1;

    fn word(&self, _index: usize) -> u64 {
        self.code()
    }

    fn set_word(&mut self, _index: usize, word: u64) {
        *self = PmiMeasurement::from_code(word);
    }
}

impl Words for BpfMeasurement {
    const COUNT: usize = 1;

    fn word(&self, _index: usize) -> u64 {
        self.code()
    }

    fn set_word(&mut self, _index: usize, word: u64) {
        *self = BpfMeasurement::from_code(word);
    }
}

/// Numbers of an array of so many words must be as many; checked when the table is compiled.
pub(super) const fn numbered<T: Words>(numbers: &'static [usize]) -> &'static [usize] {
    assert!(numbers.len() == T::COUNT, "a field has a number for each of its words");
    numbers
}

/// Declares a struct of the ledger together with the description of its fields.
///
/// ```text
/// /// Documentation of the struct.
/// struct Name in Root, root => root.member;
/// list FIELDS {
///     [numbers] name: type, Unit, "since", line, "title", "what it is";
///     [] method, Unit, "since", line, "title", "what it is";
/// }
/// and { further members }
/// ```
///
/// A row without numbers and type is computed: `name` is a method then.
macro_rules! ledger_fields {
    (
        $(#[$doc:meta])*
        struct $name:ident in $root:ident, $arg:ident => $access:expr;
        $( list $list:ident {
            $( [$($number:expr),*] $field:ident $(: $type:ty)?, $unit:ident, $since:literal, $line:expr,
                $title:literal, $what:literal $(, by $element:expr)?; )*
        } )+
        $( and { $( $(#[$other_doc:meta])* $other:ident: $other_type:ty, )* } )?
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $( $( $( #[doc = $what] pub $field: $type, )? )* )+
            $( $( $(#[$other_doc])* pub $other: $other_type, )* )?
        }

        $( static $list: &[Field<$root>] = &[
            $( Field {
                numbers: ledger_fields!(@numbers [$($number),*] $($type)?),
                name: stringify!($field),
                unit: Unit::$unit,
                since: $since,
                line: $line,
                title: $title,
                what: $what,
                element: ledger_fields!(@element $($element)?),
                word: ledger_fields!(@word $root, $arg, $access, $field $(, $type)?),
                set_word: ledger_fields!(@set_word $root, $arg, $access, $field $(, $type)?),
            }, )*
        ]; )+
    };
    (@numbers [$($number:expr),*] $type:ty) => { numbered::<$type>(&[$($number),*]) };
    (@numbers []) => { &[] };
    (@element) => { None };
    (@element $element:expr) => { Some($element) };
    (@word $root:ident, $arg:ident, $access:expr, $field:ident, $type:ty) => {
        |$arg: &$root, index| <$type as Words>::word(&$access.$field, index)
    };
    (@word $root:ident, $arg:ident, $access:expr, $method:ident) => {
        |$arg: &$root, _| $access.$method()
    };
    (@set_word $root:ident, $arg:ident, $access:expr, $field:ident, $type:ty) => {
        |$arg: &mut $root, index, word| {
            <$type as Words>::set_word(&mut $access.$field, index, word)
        }
    };
    (@set_word $root:ident, $arg:ident, $access:expr, $method:ident) => {
        |_: &mut $root, _, _| ()
    };
}

pub(super) use ledger_fields;
