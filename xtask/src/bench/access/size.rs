//! How many objects of each kind a generated cluster has.

/// A size of cluster: 2,024 ServiceAccounts are `M`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Size {
    /// 224 ServiceAccounts, 603 bindings, 1,000 pods: 4 MB.
    #[value(name = "S")]
    S,
    /// 2,024 ServiceAccounts, 6,033 bindings, 10,000 pods: 43 MB.
    #[value(name = "M")]
    M,
    /// 10,024 ServiceAccounts, 30,148 bindings, 50,000 pods: 217 MB.
    #[value(name = "L")]
    L,
    /// Four times L: 870 MB.
    #[value(name = "4L")]
    FourL,
}

impl Size {
    pub const ALL: [Self; 4] = [Self::S, Self::M, Self::L, Self::FourL];

    pub fn name(self) -> &'static str {
        match self {
            Self::S => "S",
            Self::M => "M",
            Self::L => "L",
            Self::FourL => "4L",
        }
    }

    /// Returns how many objects of each kind it has.
    pub fn counts(self) -> Counts {
        let large = Counts {
            namespaces: 1_000,
            nodes: 500,
            accounts: 10_024,
            roles: 5_018,
            cluster_roles: 306,
            role_bindings: 29_768,
            cluster_role_bindings: 380,
            pods: 50_000,
            secrets: 50_000,
        };
        match self {
            Self::S => Counts {
                namespaces: 40,
                nodes: 10,
                accounts: 224,
                roles: 118,
                cluster_roles: 96,
                role_bindings: 500,
                cluster_role_bindings: 103,
                pods: 1_000,
                secrets: 1_000,
            },
            Self::M => Counts {
                namespaces: 200,
                nodes: 100,
                accounts: 2_024,
                roles: 1_018,
                cluster_roles: 156,
                role_bindings: 5_848,
                cluster_role_bindings: 185,
                pods: 10_000,
                secrets: 10_000,
            },
            Self::L => large,
            Self::FourL => Counts {
                namespaces: 4 * large.namespaces,
                nodes: 4 * large.nodes,
                accounts: 4 * large.accounts,
                roles: 4 * large.roles,
                cluster_roles: 4 * large.cluster_roles,
                role_bindings: 4 * large.role_bindings,
                cluster_role_bindings: 4 * large.cluster_role_bindings,
                pods: 4 * large.pods,
                secrets: 4 * large.secrets,
            },
        }
    }
}

/// Objects of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    pub namespaces: usize,
    pub nodes: usize,
    pub accounts: usize,
    pub roles: usize,
    pub cluster_roles: usize,
    pub role_bindings: usize,
    pub cluster_role_bindings: usize,
    pub pods: usize,
    pub secrets: usize,
}

impl Counts {
    /// Returns each kind's plural, which names its file, and its count.
    pub fn by_kind(&self) -> [(&'static str, usize); 9] {
        [
            ("namespaces", self.namespaces),
            ("nodes", self.nodes),
            ("serviceaccounts", self.accounts),
            ("roles", self.roles),
            ("clusterroles", self.cluster_roles),
            ("rolebindings", self.role_bindings),
            ("clusterrolebindings", self.cluster_role_bindings),
            ("pods", self.pods),
            ("secrets", self.secrets),
        ]
    }

    /// Returns the number of all objects.
    pub fn objects(&self) -> usize {
        self.by_kind().iter().map(|(_, count)| count).sum()
    }
}
