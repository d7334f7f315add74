//! How a command ends: the exit codes that scripts rely on.

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// Nothing to report.
    Clean,
    /// Differences or findings.
    Findings,
    /// The command line or a given file is wrong.
    Usage,
    /// Something could not be read, so the answer may lack findings.
    Incomplete,
    /// A fault of Bailey's own.
    Internal,
}

impl Exit {
    /// The code that the process ends with.
    pub fn code(self) -> u8 {
        match self {
            Self::Clean => 0,
            Self::Findings => 1,
            Self::Usage => 2,
            Self::Incomplete => 3,
            Self::Internal => 4,
        }
    }

    /// The end of a command that found something or not, and that saw everything or not.
    ///
    /// Incomplete wins: a script that reads 1 may take the list of findings for all of them.
    pub fn of(found: bool, complete: bool) -> Self {
        match (found, complete) {
            (_, false) => Self::Incomplete,
            (true, true) => Self::Findings,
            (false, true) => Self::Clean,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_incomplete_answer_is_never_clean_and_never_only_findings() {
        assert_eq!(Exit::of(false, true).code(), 0);
        assert_eq!(Exit::of(true, true).code(), 1);
        assert_eq!(Exit::of(false, false).code(), 3);
        assert_eq!(Exit::of(true, false).code(), 3);
        assert_eq!((Exit::Usage.code(), Exit::Internal.code()), (2, 4));
    }
}
