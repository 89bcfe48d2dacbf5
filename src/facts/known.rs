//! A value that a node has, has not, or that could not be found out.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A fact that could not be read is not a "no".
///
/// As JSON: `Unknown` is a missing key (the field needs `default` and `skip_serializing_if`), `No` is null.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Known<T> {
    /// It has it.
    Yes(T),
    /// It was asked, and is absent.
    No,
    /// Not asked, or not readable.
    #[default]
    Unknown,
}

impl<T> Known<T> {
    /// Whether nothing is known.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Known::Unknown)
    }

    /// The value, if there is one.
    pub fn yes(&self) -> Option<&T> {
        match self {
            Known::Yes(value) => Some(value),
            Known::No | Known::Unknown => None,
        }
    }

    /// `None` means asked and absent.
    pub fn asked(value: Option<T>) -> Self {
        value.map_or(Known::No, Known::Yes)
    }

    /// `None` means not known.
    pub fn read(value: Option<T>) -> Self {
        value.map_or(Known::Unknown, Known::Yes)
    }
}

impl<T: Serialize> Serialize for Known<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.yes().serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Known<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::deserialize(deserializer).map(Known::asked)
    }
}
