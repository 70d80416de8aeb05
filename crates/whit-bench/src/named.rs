//! Values that tables, JSON and command lines call by name.

/// A text that names none of the values that there are.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("'{text}' is no {what}; there are {}", names.join(", "))]
pub struct UnknownName {
    pub(crate) text: String,
    /// Kind of the expected name: `table`.
    pub(crate) what: &'static str,
    pub(crate) names: Vec<&'static str>,
}

/// Shows and serializes a type by its `name`.
macro_rules! show_by_name {
    ($name:ty) => {
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }
    };
}

/// The same, and reads one of `all` back.
macro_rules! go_by_name {
    ($name:ty, $what:literal, $all:expr) => {
        $crate::named::show_by_name!($name);

        impl std::str::FromStr for $name {
            type Err = $crate::named::UnknownName;

            fn from_str(text: &str) -> Result<$name, Self::Err> {
                let found = $all.into_iter().find(|value| value.name() == text);
                found.ok_or_else(|| $crate::named::UnknownName {
                    text: text.to_owned(),
                    what: $what,
                    names: $all.into_iter().map(<$name>::name).collect(),
                })
            }
        }
    };
}

pub(crate) use {go_by_name, show_by_name};
