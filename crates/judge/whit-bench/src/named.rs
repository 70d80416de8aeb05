//! Values that tables, JSON and command lines call by name.

/// Shows and serializes a [`clap::ValueEnum`] by the name of its value.
macro_rules! named {
    ($name:ty) => {
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let value = self.to_possible_value();
                f.pad(value.as_ref().map_or("", clap::builder::PossibleValue::get_name))
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    };
}

pub(crate) use named;
