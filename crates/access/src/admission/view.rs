//! A JSON document of which only a part is certain.
//!
//! A sample stands for all requests that share its essential fields. Seen through a [`View`], those are what they are,
//! and everything else could be anything: present or not, of any value.

use serde_json::Value;

/// Which part of a document is certain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Parts {
    /// All of it, whatever it is, absent too.
    whole: bool,
    /// What `children` does not name.
    rest: bool,
    children: Vec<(String, Parts)>,
}

impl Parts {
    /// Only what these JSON pointers (RFC 6901) name, and that what they lie in exists.
    pub(super) fn only<'p>(pointers: impl IntoIterator<Item = &'p str>) -> Self {
        let mut parts = Self::default();
        for pointer in pointers {
            parts.set(pointer.split('/').skip(1), &Self { whole: true, ..Self::default() });
        }
        parts
    }

    /// All but what these JSON pointers name.
    pub(super) fn except<'p>(pointers: impl IntoIterator<Item = &'p str>) -> Self {
        let mut parts = Self { rest: true, ..Self::default() };
        for pointer in pointers {
            parts.set(pointer.split('/').skip(1), &Self::default());
        }
        parts
    }

    fn set<'p>(&mut self, mut tokens: impl Iterator<Item = &'p str>, leaf: &Self) {
        let Some(token) = tokens.next() else {
            *self = leaf.clone();
            return;
        };
        if self.whole {
            return;
        }
        let token = token.replace("~1", "/").replace("~0", "~");
        let rest = self.rest;
        match self.children.iter_mut().find(|(name, _)| *name == token) {
            Some((_, child)) => child.set(tokens, leaf),
            None => {
                let mut child = Self { rest, ..Self::default() };
                child.set(tokens, leaf);
                self.children.push((token, child));
            }
        }
    }

    fn child(&self, name: &str) -> Knowledge<'_> {
        match self.children.iter().find(|(child, _)| child == name) {
            Some((_, child)) if child.whole => Knowledge::All,
            Some((_, child)) if child.children.is_empty() && !child.rest => Knowledge::Nothing,
            Some((_, child)) => Knowledge::Part(child),
            None if self.rest => Knowledge::All,
            None => Knowledge::Nothing,
        }
    }
}

enum Knowledge<'a> {
    All,
    Part(&'a Parts),
    Nothing,
}

/// A value and what is certain of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    value: &'a Value,
    /// None for all of it.
    parts: Option<&'a Parts>,
}

/// What is at a place of a document.
#[derive(Debug, Clone, Copy)]
pub(super) enum Child<'a> {
    Present(View<'a>),
    Absent,
    Unknown,
}

impl<'a> View<'a> {
    pub(super) fn certain(value: &'a Value) -> Self {
        Self { value, parts: None }
    }

    pub(super) fn partial(value: &'a Value, parts: &'a Parts) -> Self {
        Self { value, parts: (!parts.whole).then_some(parts) }
    }

    /// The value as it was sent. Of a container, [`View::get`] says what is certain of it.
    pub(super) fn value(&self) -> &'a Value {
        self.value
    }

    /// Whether all of it is certain.
    pub(super) fn is_certain(&self) -> bool {
        self.parts.is_none()
    }

    /// What is in a member of an object, or at an index of a list.
    pub(super) fn get(&self, name: &str) -> Child<'a> {
        let child = match self.value {
            Value::Array(list) => name.parse::<usize>().ok().and_then(|index| list.get(index)),
            value => value.get(name),
        };
        match (self.parts.map_or(Knowledge::All, |parts| parts.child(name)), child) {
            (Knowledge::All, Some(value)) => Child::Present(Self::certain(value)),
            (Knowledge::All, None) => Child::Absent,
            (Knowledge::Part(parts), Some(value)) => Child::Present(Self::partial(value, parts)),
            // Without what it lies in, somebody else could send that with or without it.
            (Knowledge::Part(_), None) | (Knowledge::Nothing, _) => Child::Unknown,
        }
    }

    /// What is at the end of a path of members.
    pub(super) fn path(&self, path: &[&str]) -> Child<'a> {
        let mut child = Child::Present(*self);
        for name in path {
            match child {
                Child::Present(view) => child = view.get(name),
                end => return end,
            }
        }
        child
    }

    /// The members of an object or list that are certain, by name or index.
    pub(super) fn members(&self) -> Vec<(String, View<'a>)> {
        let present = |name: String| match self.get(&name) {
            Child::Present(view) => Some((name, view)),
            Child::Absent | Child::Unknown => None,
        };
        match self.value {
            Value::Object(map) => map.keys().cloned().filter_map(present).collect(),
            Value::Array(list) => {
                (0..list.len()).map(|index| index.to_string()).filter_map(present).collect()
            }
            _ => Vec::new(),
        }
    }
}

impl<'a> Child<'a> {
    /// The view, if it is present.
    pub(super) fn present(self) -> Option<View<'a>> {
        match self {
            Self::Present(view) => Some(view),
            Self::Absent | Self::Unknown => None,
        }
    }

    /// What is in a member of it.
    pub(super) fn get(self, name: &str) -> Self {
        match self {
            Self::Present(view) => view.get(name),
            end => end,
        }
    }
}

#[cfg(test)]
mod tests;
