//! Interned names: each string of a snapshot is kept once and compared as a number.

use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;

/// A name of a [`Symbols`] table. The numbers of two tables have nothing to do with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Symbol(u32);

impl Symbol {
    /// The empty string: the core API group, no name.
    pub const EMPTY: Self = Self(0);
    /// A name that no fact holds.
    pub const UNKNOWN: Self = Self(u32::MAX);
    /// The wildcard of RBAC.
    pub const STAR: Self = Self(1);
}

/// All names of a snapshot.
#[derive(Debug, Clone)]
pub struct Symbols(IndexSet<Box<str>, FxBuildHasher>);

impl Default for Symbols {
    fn default() -> Self {
        let mut names = IndexSet::default();
        names.insert("".into());
        names.insert("*".into());
        Self(names)
    }
}

impl Symbols {
    /// The symbol of a name, new or known. A snapshot of more than 2³² names is refused by its loader long before.
    pub fn intern(&mut self, name: &str) -> Symbol {
        let index = match self.0.get_index_of(name) {
            Some(index) => index,
            None => self.0.insert_full(name.into()).0,
        };
        Symbol(u32::try_from(index).unwrap_or(u32::MAX))
    }

    /// The symbol of a name that is known.
    pub fn find(&self, name: &str) -> Option<Symbol> {
        self.0.get_index_of(name).and_then(|index| u32::try_from(index).ok()).map(Symbol)
    }

    /// The name of a symbol; empty for one of another table.
    pub fn name(&self, symbol: Symbol) -> &str {
        self.0.get_index(symbol.0 as usize).map_or("", |name| name)
    }

    /// Whether another table has the same names at the same numbers, and perhaps more after them.
    pub fn is_start_of(&self, other: &Self) -> bool {
        self.0.len() <= other.0.len() && self.0.iter().zip(&other.0).all(|(one, other)| one == other)
    }

    /// How many names there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Never true: the empty name and the wildcard are always there.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
