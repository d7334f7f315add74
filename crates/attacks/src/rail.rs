//! The rails an attack can run into.

use std::fmt;

use serde::Deserialize;

/// Names one guard rail of an installation, or plain RBAC where only a missing grant stops the attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rail {
    HiddenRead,
    Namespaces,
    RbacOwnership,
    RbacSubjects,
    ScopedRoles,
    InstallTarget,
    Crds,
    PlatformWorkloads,
    PlatformConnect,
    PlatformIdentities,
    BaileyObjects,
    BoundaryIndex,
    Pods,
    /// The Pod Security labels that Bailey keeps on the namespaces of tenants.
    PodSecurity,
    Rbac,
}

impl Rail {
    /// Lists every rail, in the order of the documentation.
    pub const ALL: [Self; 15] = [
        Self::HiddenRead,
        Self::Namespaces,
        Self::RbacOwnership,
        Self::RbacSubjects,
        Self::ScopedRoles,
        Self::InstallTarget,
        Self::Crds,
        Self::PlatformWorkloads,
        Self::PlatformConnect,
        Self::PlatformIdentities,
        Self::BaileyObjects,
        Self::BoundaryIndex,
        Self::Pods,
        Self::PodSecurity,
        Self::Rbac,
    ];

    /// Returns the name used in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::HiddenRead => "hidden-read",
            Self::Namespaces => "namespaces",
            Self::RbacOwnership => "rbac-ownership",
            Self::RbacSubjects => "rbac-subjects",
            Self::ScopedRoles => "scoped-roles",
            Self::InstallTarget => "install-target",
            Self::Crds => "crds",
            Self::PlatformWorkloads => "platform-workloads",
            Self::PlatformConnect => "platform-connect",
            Self::PlatformIdentities => "platform-identities",
            Self::BaileyObjects => "bailey-objects",
            Self::BoundaryIndex => "boundary-index",
            Self::Pods => "pods",
            Self::PodSecurity => "pod-security",
            Self::Rbac => "rbac",
        }
    }
}

impl fmt::Display for Rail {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}
