//! Truth of what may depend on something that is not known.

/// Yes, no, or it depends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Truth {
    True,
    False,
    Unknown,
}

impl Truth {
    pub(super) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::False, _) | (_, Self::False) => Self::False,
            (Self::True, Self::True) => Self::True,
            _ => Self::Unknown,
        }
    }

    pub(super) fn or(self, other: Self) -> Self {
        !(!self).and(!other)
    }

    /// True for none.
    pub(super) fn all(truths: impl IntoIterator<Item = Self>) -> Self {
        let mut all = Self::True;
        for truth in truths {
            all = all.and(truth);
            if all == Self::False {
                break;
            }
        }
        all
    }

    /// False for none.
    pub(super) fn any(truths: impl IntoIterator<Item = Self>) -> Self {
        !Self::all(truths.into_iter().map(|truth| !truth))
    }
}

impl std::ops::Not for Truth {
    type Output = Self;

    fn not(self) -> Self {
        match self {
            Self::True => Self::False,
            Self::False => Self::True,
            Self::Unknown => Self::Unknown,
        }
    }
}

impl From<bool> for Truth {
    fn from(value: bool) -> Self {
        if value { Self::True } else { Self::False }
    }
}
