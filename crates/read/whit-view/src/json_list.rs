//! Lists and maps of JSON that are written as they are made.

use std::fmt::Display;

use serde::{Serialize, Serializer};

/// A list whose elements are made one by one while it is written.
pub(crate) struct Each<'a, T>(Make<'a, T>);

type Make<'a, T> = Box<dyn Fn() -> Box<dyn Iterator<Item = T> + 'a> + 'a>;

impl<'a, T> Each<'a, T> {
    /// The elements that `make` gives.
    pub(crate) fn new<I>(make: impl Fn() -> I + 'a) -> Each<'a, T>
    where
        I: Iterator<Item = T> + 'a,
    {
        Each(Box::new(move || Box::new(make())))
    }
}

impl<T: Serialize> Serialize for Each<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}

/// Counts by name.
pub(crate) struct Counts<'a, N>(pub(crate) &'a [(N, u64)]);

impl<N: Display> Serialize for Counts<'_, N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, count)| (name.to_string(), count)))
    }
}

#[cfg(test)]
mod schemas {
    use std::borrow::Cow;
    use std::collections::BTreeMap;

    use schemars::{JsonSchema, Schema, SchemaGenerator};

    use super::{Counts, Each};

    impl<T: JsonSchema> JsonSchema for Each<'_, T> {
        fn inline_schema() -> bool {
            true
        }

        fn schema_name() -> Cow<'static, str> {
            Vec::<T>::schema_name()
        }

        fn json_schema(generator: &mut SchemaGenerator) -> Schema {
            Vec::<T>::json_schema(generator)
        }
    }

    impl<N> JsonSchema for Counts<'_, N> {
        fn inline_schema() -> bool {
            true
        }

        fn schema_name() -> Cow<'static, str> {
            "Counts".into()
        }

        fn json_schema(generator: &mut SchemaGenerator) -> Schema {
            BTreeMap::<String, u64>::json_schema(generator)
        }
    }
}
