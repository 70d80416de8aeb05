//! Settings that are described once: struct, defaults, options of the command line and documents come from one table.

use serde::{Deserialize, Deserializer};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use whit_types::{ByteSize, ParseTimeLengthError, TimeLength};

/// How the text of an option becomes a value of the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A string.
    Text,
    /// An integer or a fraction.
    Number,
    /// `true` or `false`; the option alone says `true`.
    Flag,
    /// Strings, which commas part on the command line.
    List,
}

/// A key of the configuration file, which is an option of the command line, too.
#[derive(Clone, PartialEq, Debug)]
pub struct Key {
    /// As in the file. The option is the same behind two dashes.
    pub name: String,
    /// The name of its value.
    pub value: &'static str,
    /// The text for users.
    pub help: String,
    /// The value of those who give none.
    pub default: Option<String>,
    /// Its type.
    pub kind: Kind,
}

/// A type of values.
pub trait Value {
    /// How options are read.
    const KIND: Kind;
    /// As a user would write it; `None` where there is nothing to write.
    fn shown(&self) -> Option<String>;
}

macro_rules! value {
    ($($type:ty => $kind:ident),* $(,)?) => {$(
        impl Value for $type {
            const KIND: Kind = Kind::$kind;
            fn shown(&self) -> Option<String> {
                Some(self.to_string()).filter(|text| !text.is_empty())
            }
        }
    )*};
}

value!(String => Text, Length => Text, Size => Text, f64 => Number, u32 => Number, u64 => Number, bool => Flag);

impl Value for PathBuf {
    const KIND: Kind = Kind::Text;
    fn shown(&self) -> Option<String> {
        Some(self.display().to_string()).filter(|text| !text.is_empty())
    }
}

impl Value for Vec<String> {
    const KIND: Kind = Kind::List;
    fn shown(&self) -> Option<String> {
        Some(self.join(",")).filter(|text| !text.is_empty())
    }
}

impl<T: Value> Value for Option<T> {
    const KIND: Kind = T::KIND;
    fn shown(&self) -> Option<String> {
        self.as_ref().and_then(Value::shown)
    }
}

/// A length of time: `30s`, `10m`, `12h`, `7d`, or a number of seconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Length(pub Duration);

impl Length {
    /// So many seconds.
    pub const fn seconds(seconds: u64) -> Length {
        Length(Duration::from_secs(seconds))
    }
}

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        TimeLength(self.0).fmt(f)
    }
}

impl FromStr for Length {
    type Err = ParseTimeLengthError;

    fn from_str(text: &str) -> Result<Length, ParseTimeLengthError> {
        text.parse().map(|TimeLength(length)| Length(length))
    }
}

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Length, D::Error> {
        text_or_number(from)?.parse().map_err(serde::de::Error::custom)
    }
}

/// A number of bytes: `500M`, `2G`, or a plain number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Size(pub ByteSize);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Size, D::Error> {
        text_or_number(from)?.parse().map(Size).map_err(serde::de::Error::custom)
    }
}

/// Reads numbers as if they were written in quotes.
fn text_or_number<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Text(String),
        Whole(u64),
        Fraction(f64),
    }
    Ok(match Written::deserialize(from)? {
        Written::Text(text) => text,
        Written::Whole(number) => number.to_string(),
        Written::Fraction(number) => number.to_string(),
    })
}

/// Makes a struct of settings, its defaults, and the list of its keys. A field `keep_age` has the key `keep-age`.
/// `tables` are those of other crates, which have keys of their own.
macro_rules! settings {
    (
        $(#[doc = $about:literal])*
        pub struct $name:ident {
            $($(#[doc = $help:literal])+ $field:ident: $type:ty = $default:expr, $value:literal;)*
        }
        tables { $($(#[doc = $table_help:literal])+ $table:ident: $table_type:ty;)* }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, PartialEq, serde::Deserialize)]
        #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
        pub struct $name {
            $($(#[doc = $help])+ pub $field: $type,)*
            $($(#[doc = $table_help])+ pub $table: $table_type,)*
        }

        impl Default for $name {
            fn default() -> $name {
                $name { $($field: $default,)* $($table: Default::default(),)* }
            }
        }

        impl $name {
            /// All keys, in the order of the documents.
            pub fn keys() -> &'static [$crate::described::Key] {
                static KEYS: std::sync::LazyLock<Vec<$crate::described::Key>> =
                    std::sync::LazyLock::new(|| {
                        let default = $name::default();
                        vec![$($crate::described::Key {
                            name: stringify!($field).replace('_', "-"),
                            value: $value,
                            help: [$($help.trim()),+].join(" "),
                            default: $crate::described::Value::shown(&default.$field),
                            kind: <$type as $crate::described::Value>::KIND,
                        },)*]
                    });
                &KEYS
            }
        }
    };
}
pub(crate) use settings;
