//! Fields of a table: weights and sort keys, as columns and as criteria of the rows' order.

use super::latency::WeightColumn;
use super::sort_key::{SortKey, UnknownSortKey};

/// A column, or a criterion of the rows' order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Field {
    /// Share of the event with all callees.
    Children,
    /// Share of the event.
    Overhead,
    /// Share of the event's latency with all callees.
    ChildrenLatency,
    /// Share of the event's latency.
    Latency,
    /// Share of the event that ran in the kernel.
    KernelOverhead,
    /// Share of the event that ran outside of the kernel.
    UserOverhead,
    /// Number of samples.
    Samples,
    /// Sum of periods.
    Period,
    /// A sort key.
    Key(SortKey),
}

/// The names of weights in `--sort` and `--fields`, in the order in which an abbreviation is looked up.
const WEIGHTS: [(&str, Field); 8] = [
    ("overhead", Field::Overhead),
    ("overhead_sys", Field::KernelOverhead),
    ("overhead_us", Field::UserOverhead),
    ("overhead_children", Field::Children),
    ("latency", Field::Latency),
    ("latency_children", Field::ChildrenLatency),
    ("sample", Field::Samples),
    ("period", Field::Period),
];

/// A word that names no field.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}; columns are {weights}, too", weights = Field::weight_names())]
pub struct UnknownField(UnknownSortKey);

/// Keys, columns and order of `--sort` and `--fields`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Fields {
    /// Keys that tell rows apart.
    pub keys: Vec<SortKey>,
    /// Columns in their order; empty for perf's default.
    pub columns: Vec<Field>,
    /// Order of the rows; empty for perf's default.
    pub order: Vec<Field>,
}

impl Field {
    /// Every weight.
    pub const ALL_WEIGHTS: [Field; 8] = [
        Field::Overhead,
        Field::KernelOverhead,
        Field::UserOverhead,
        Field::Children,
        Field::Latency,
        Field::ChildrenLatency,
        Field::Samples,
        Field::Period,
    ];

    /// As the field is written in lists.
    pub fn name(self) -> &'static str {
        match self {
            Field::Key(key) => key.name(),
            weight => WEIGHTS.iter().find(|(_, of)| *of == weight).map_or("", |(name, _)| name),
        }
    }

    /// The names of all weights, with commas between them.
    fn weight_names() -> String {
        WEIGHTS.map(|(name, _)| name).join(", ")
    }

    /// The field of a column of shares: of the row alone, or with its callees.
    pub fn of_share(share: WeightColumn, with_callees: bool) -> Field {
        match (share, with_callees) {
            (WeightColumn::Overhead, false) => Field::Overhead,
            (WeightColumn::Overhead, true) => Field::Children,
            (WeightColumn::Latency, false) => Field::Latency,
            (WeightColumn::Latency, true) => Field::ChildrenLatency,
        }
    }

    /// The column of shares that the field is about; its callees count for the same.
    pub fn share(self) -> Option<WeightColumn> {
        match self {
            Field::Overhead | Field::Children => Some(WeightColumn::Overhead),
            Field::Latency | Field::ChildrenLatency => Some(WeightColumn::Latency),
            _ => None,
        }
    }

    /// As perf, which looks for keys of all samples first, then for weights, then for keys of branches and memory.
    fn parse(word: &str) -> Result<Field, UnknownField> {
        let lower = word.to_ascii_lowercase();
        let weight = WEIGHTS.iter().find(|(name, _)| name.starts_with(&lower));
        match (SortKey::parse(word), weight) {
            (Ok(key), Some((name, weight))) => {
                let is_late =
                    SortKey::OF_BRANCHES.contains(&key) || SortKey::OF_MEMORY.contains(&key);
                let is_whole = *name == lower && key.name() != lower;
                Ok(if is_late || is_whole { *weight } else { Field::Key(key) })
            }
            (Ok(key), None) => Ok(Field::Key(key)),
            (Err(_), Some((_, weight))) => Ok(*weight),
            (Err(error), None) => Err(UnknownField(error)),
        }
    }

    fn parse_list(list: &str) -> Result<Vec<Field>, UnknownField> {
        let mut fields = Vec::new();
        for word in list.split([',', ' ', '{', '}']).filter(|word| !word.is_empty()) {
            let field = Field::parse(word)?;
            if !fields.contains(&field) {
                fields.push(field);
            }
        }
        Ok(fields)
    }
}

impl Fields {
    /// The fields that the lists of `--sort` and `--fields` name, in their order.
    ///
    /// # Errors
    /// [`UnknownField`] for a word that is the beginning of no field.
    pub fn named(sort: Option<&str>, fields: Option<&str>) -> Result<Vec<Field>, UnknownField> {
        let mut named = Vec::new();
        for list in [sort, fields].into_iter().flatten() {
            named.extend(Field::parse_list(list.trim_start_matches('+'))?);
        }
        Ok(named)
    }

    /// Joins the lists of `--sort` and `--fields` as perf does: either may begin with `+`, which adds to the default;
    /// columns that no key names are keys, too, and keys that no column names are columns behind the others.
    /// `weights` are the columns of weights that stand in front where `--fields` does not list all columns.
    ///
    /// # Errors
    /// [`UnknownField`] for a word that is the beginning of no field.
    pub fn parse(
        sort: Option<&str>,
        fields: Option<&str>,
        default: &[SortKey],
        weights: &[Field],
    ) -> Result<Fields, UnknownField> {
        let default = default.iter().copied().map(Field::Key);
        let (sort, fields) = (sort.filter(|s| !s.is_empty()), fields.filter(|f| !f.is_empty()));
        let strict = fields.is_some_and(|list| !list.starts_with('+'));
        let mut sorted = match sort.map(|list| (list, list.strip_prefix('+'))) {
            Some((_, Some(more))) => {
                let mut all: Vec<Field> = default.collect();
                add(&mut all, Field::parse_list(more)?);
                all
            }
            Some((list, None)) => Field::parse_list(list)?,
            None if strict => Vec::new(),
            None => default.collect(),
        };
        if !strict {
            for weight in weights.iter().rev().filter(|weight| weight.share().is_some()) {
                if !sorted.contains(weight) {
                    sorted.insert(0, *weight);
                }
            }
        }
        let mut columns = if strict { Vec::new() } else { weights.to_vec() };
        if let Some(list) = fields {
            add(&mut columns, Field::parse_list(list.trim_start_matches('+'))?);
        }
        add(&mut columns, sorted.clone());
        add(&mut sorted, columns.clone());
        let key = |field: &Field| match field {
            Field::Key(key) => Some(*key),
            _ => None,
        };
        Ok(Fields { keys: sorted.iter().filter_map(key).collect(), columns, order: sorted })
    }
}

fn add(list: &mut Vec<Field>, more: Vec<Field>) {
    for field in more {
        if !list.contains(&field) {
            list.push(field);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[Field]) -> String {
        list.iter().map(|field| field.name()).collect::<Vec<_>>().join(",")
    }

    fn parsed(sort: Option<&str>, fields: Option<&str>) -> (String, String) {
        let fields = Fields::parse(sort, fields, &SortKey::DEFAULT, &[Field::Overhead]).unwrap();
        (names(&fields.columns), names(&fields.order))
    }

    #[test]
    fn lists_are_joined_as_perf_joins_them() {
        let pair = |columns: &str, order: &str| (columns.to_owned(), order.to_owned());
        let listed = "overhead,comm,sample";
        assert_eq!(parsed(Some("comm,sample"), None), pair(listed, listed));
        assert_eq!(parsed(None, Some("comm,overhead")), pair("comm,overhead", "comm,overhead"));
        assert_eq!(parsed(Some("sym"), Some("sample")), pair("sample,symbol", "symbol,sample"));
        let added = "overhead,period,comm,dso,symbol";
        assert_eq!(parsed(None, Some("+period")), pair(added, "overhead,comm,dso,symbol,period"));
        assert_eq!(parsed(Some("+cpu"), None).1, "overhead,comm,dso,symbol,cpu");
    }

    #[test]
    fn shares_are_among_keys() {
        let shares = |sort, fields| {
            let named = Fields::named(sort, fields).unwrap();
            named.into_iter().filter_map(Field::share).collect::<Vec<_>>()
        };
        let both = [WeightColumn::Latency, WeightColumn::Overhead];
        assert_eq!(shares(Some("Latency,paral,over"), None), both);
        assert_eq!(shares(Some("comm"), Some("+lat,overhead")), both);
        assert_eq!(shares(Some("comm"), None), []);
        // An abbreviation means a key before it means a column.
        assert_eq!(Field::parse("paral"), Ok(Field::Key(SortKey::Parallelism)));
        assert_eq!(Field::parse("l"), Ok(Field::Key(SortKey::LocalWeight)));
        assert_eq!(Field::parse("lat"), Ok(Field::Latency));
        assert!(Field::parse("latencies").unwrap_err().to_string().contains("latency_children"));
        let weights = [Field::ChildrenLatency, Field::Children, Field::Latency, Field::Overhead];
        let listed = "latency_children,overhead_children,latency,overhead,comm";
        let sort = Some("latency,overhead,comm");
        let fields = Fields::parse(sort, None, &SortKey::DEFAULT, &weights).unwrap();
        assert_eq!((names(&fields.columns), names(&fields.order)), (listed.into(), listed.into()));
    }

    #[test]
    fn weights_are_found_between_keys_of_samples_and_those_of_branches() {
        assert_eq!(Field::parse("sa"), Ok(Field::Samples));
        assert_eq!(Field::parse("s"), Ok(Field::Key(SortKey::Symbol)));
        assert_eq!(Field::parse("per"), Ok(Field::Period));
        assert_eq!(Field::parse("pe"), Ok(Field::Period));
        assert!(Field::parse("overheat").is_err());
    }
}
