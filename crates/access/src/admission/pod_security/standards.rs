//! The Pod Security Standards: which pods a level refuses.
//!
//! Semantics: `k8s.io/pod-security-admission/policy` (the `check_*.go` files), of the newest version; older ones refuse a
//! little less, but never a pod that takes over its node. A relaxation for user namespaces is left open.

use serde_json::Value;

use super::PodSecurityLevel;
use crate::admission::{
    truth::Truth,
    view::{Child, View},
};

/// A control of the standards.
pub(in crate::admission) struct Control {
    /// The name that policies of Kyverno use.
    pub(in crate::admission) name: &'static str,
    level: PodSecurityLevel,
    /// Whether a stricter control takes its place at the restricted level.
    is_replaced: bool,
    is_violated: fn(View<'_>) -> Truth,
}

const fn baseline(name: &'static str, is_violated: fn(View<'_>) -> Truth) -> Control {
    Control { name, level: PodSecurityLevel::Baseline, is_replaced: false, is_violated }
}

const fn replaced(name: &'static str, is_violated: fn(View<'_>) -> Truth) -> Control {
    Control { name, level: PodSecurityLevel::Baseline, is_replaced: true, is_violated }
}

const fn restricted(name: &'static str, is_violated: fn(View<'_>) -> Truth) -> Control {
    Control { name, level: PodSecurityLevel::Restricted, is_replaced: false, is_violated }
}

static CONTROLS: [Control; 18] = [
    baseline("Privileged Containers", |pod| {
        any_container(pod, |c| is_true(c.path(&["securityContext", "privileged"])))
    }),
    baseline("Host Namespaces", |pod| {
        Truth::any(["hostNetwork", "hostPID", "hostIPC"].map(|field| is_true(pod.path(&["spec", field]))))
    }),
    replaced("HostPath Volumes", |pod| {
        any_item(pod.path(&["spec", "volumes"]), |v| is_set(v.get("hostPath")))
    }),
    replaced("Capabilities", |pod| any_container(pod, |c| !adds_only(c, &ADDED))),
    baseline("HostProcess", |pod| any_context(pod, |s| is_true(s.path(&["windowsOptions", "hostProcess"])))),
    baseline("Host Ports", |pod| {
        any_container(pod, |c| any_item(c.get("ports"), |port| is_nonzero(port.get("hostPort"))))
    }),
    baseline("/proc Mount Type", |pod| {
        any_container(pod, |c| !is_one_of(c.path(&["securityContext", "procMount"]), &["Default"]))
    }),
    baseline("AppArmor", app_armor),
    baseline("SELinux", |pod| any_context(pod, |s| se_linux(s.get("seLinuxOptions")))),
    replaced("Seccomp", |pod| {
        any_context(pod, |s| {
            !is_one_of(s.path(&["seccompProfile", "type"]), &["RuntimeDefault", "Localhost"])
        })
    }),
    baseline("Sysctls", |pod| {
        any_item(pod.path(&["spec", "securityContext", "sysctls"]), |s| !is_one_of(s.get("name"), &SYSCTLS))
    }),
    baseline("Host Probes", |pod| any_container(pod, probes_other_host)),
    restricted("Volume Types", |pod| any_item(pod.path(&["spec", "volumes"]), other_volume)),
    restricted("Privilege Escalation", |pod| {
        any_container(pod, |c| !is_false(c.path(&["securityContext", "allowPrivilegeEscalation"])))
    }),
    restricted("Running as Non-root", |pod| {
        let of_pod = pod.path(&["spec", "securityContext", "runAsNonRoot"]);
        let container = |c: View<'_>| {
            let own = c.path(&["securityContext", "runAsNonRoot"]);
            is_false(own).or(is_absent(own).and(!is_true(of_pod)))
        };
        is_false(of_pod).or(any_container(pod, container))
    }),
    restricted("Running as Non-root user", |pod| any_context(pod, |s| is_zero(s.get("runAsUser")))),
    restricted("Seccomp", |pod| {
        let of_pod = pod.path(&["spec", "securityContext", "seccompProfile", "type"]);
        let is_good = |child: Child<'_>| is_one_of(child, &["RuntimeDefault", "Localhost"]);
        let container = |c: View<'_>| {
            let own = c.path(&["securityContext", "seccompProfile", "type"]);
            (!is_good(own)).or(is_absent(own).and(is_absent(of_pod)))
        };
        (!is_good(of_pod)).or(any_container(pod, container))
    }),
    restricted("Capabilities", |pod| {
        any_container(pod, |c| {
            let drops = any_item(c.path(&["securityContext", "capabilities", "drop"]), |item| {
                (item.value().as_str() == Some("ALL")).into()
            });
            !drops.and(adds_only(c, &["NET_BIND_SERVICE"]))
        })
    }),
];

const ADDED: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

const SYSCTLS: [&str; 12] = [
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_wmem",
];

/// Whether a pod violates a level, and a control that it does or may violate. Controls of these names are left out.
pub(in crate::admission) fn violated(
    pod: View<'_>,
    level: PodSecurityLevel,
    excluded: &[String],
) -> Option<(&'static str, Truth)> {
    let is_restricted = level == PodSecurityLevel::Restricted;
    let mut unknown = None;
    for control in
        CONTROLS.iter().filter(|control| control.level <= level && !(control.is_replaced && is_restricted))
    {
        if excluded.iter().any(|name| name == control.name) {
            continue;
        }
        match (control.is_violated)(pod) {
            Truth::True if control.level == PodSecurityLevel::Restricted && has_own_users(pod) => {
                unknown = unknown.or(Some((control.name, Truth::Unknown)));
            }
            Truth::True => return Some((control.name, Truth::True)),
            Truth::Unknown => unknown = unknown.or(Some((control.name, Truth::Unknown))),
            Truth::False => {}
        }
    }
    unknown
}

/// Whether the pod has a user namespace, for which some controls may be relaxed.
fn has_own_users(pod: View<'_>) -> bool {
    is_false(pod.path(&["spec", "hostUsers"])) == Truth::True
}

fn decided(child: Child<'_>, decide: impl Fn(Option<&Value>) -> bool) -> Truth {
    match child {
        Child::Present(view) => decide(Some(view.value()).filter(|value| !value.is_null())).into(),
        Child::Absent => decide(None).into(),
        Child::Unknown => Truth::Unknown,
    }
}

fn is_true(child: Child<'_>) -> Truth {
    decided(child, |value| value == Some(&Value::Bool(true)))
}

fn is_false(child: Child<'_>) -> Truth {
    decided(child, |value| value == Some(&Value::Bool(false)))
}

fn is_absent(child: Child<'_>) -> Truth {
    decided(child, |value| value.is_none())
}

fn is_set(child: Child<'_>) -> Truth {
    !is_absent(child)
}

fn is_zero(child: Child<'_>) -> Truth {
    decided(child, |value| value.and_then(Value::as_i64) == Some(0))
}

fn is_nonzero(child: Child<'_>) -> Truth {
    decided(child, |value| value.and_then(Value::as_i64).is_some_and(|number| number != 0))
}

/// Whether a text is one of these, or absent.
fn is_one_of(child: Child<'_>, allowed: &[&str]) -> Truth {
    decided(child, |value| {
        value.is_none_or(|value| value.as_str().is_some_and(|text| allowed.contains(&text)))
    })
}

/// Whether something holds for an item of a list.
fn any_item(list: Child<'_>, holds: impl Fn(View<'_>) -> Truth) -> Truth {
    match list {
        Child::Unknown => Truth::Unknown,
        Child::Absent => Truth::False,
        Child::Present(view) => {
            let found = Truth::any(view.members().into_iter().map(|(_, item)| holds(item)));
            if view.is_certain() { found } else { found.or(Truth::Unknown) }
        }
    }
}

fn any_container(pod: View<'_>, holds: impl Fn(View<'_>) -> Truth) -> Truth {
    let lists = ["containers", "initContainers", "ephemeralContainers"];
    Truth::any(lists.map(|list| any_item(pod.path(&["spec", list]), &holds)))
}

/// Whether something holds for the security context of the pod or of a container.
fn any_context(pod: View<'_>, holds: impl Fn(View<'_>) -> Truth) -> Truth {
    let of = |child: Child<'_>| match child {
        Child::Present(view) => holds(view),
        Child::Absent => Truth::False,
        Child::Unknown => Truth::Unknown,
    };
    of(pod.path(&["spec", "securityContext"])).or(any_container(pod, |c| of(c.get("securityContext"))))
}

fn adds_only(container: View<'_>, allowed: &[&str]) -> Truth {
    let added = container.path(&["securityContext", "capabilities", "add"]);
    !any_item(added, |item| (!item.value().as_str().is_some_and(|name| allowed.contains(&name))).into())
}

fn se_linux(options: Child<'_>) -> Truth {
    const TYPES: [&str; 5] = ["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"];
    let other = |field: &str, allowed: &[&str]| !is_one_of(options.get(field), allowed);
    Truth::any([other("type", &TYPES), other("user", &[""]), other("role", &[""])])
}

fn app_armor(pod: View<'_>) -> Truth {
    let profile =
        |s: View<'_>| !is_one_of(s.path(&["appArmorProfile", "type"]), &["RuntimeDefault", "Localhost"]);
    let annotation = |view: View<'_>| {
        let others = view
            .members()
            .into_iter()
            .filter(|(key, _)| key.starts_with("container.apparmor.security.beta.kubernetes.io/"));
        Truth::any(others.map(|(_, value)| {
            let text = value.value().as_str().unwrap_or_default();
            Truth::from(!(text.is_empty() || text == "runtime/default" || text.starts_with("localhost/")))
        }))
    };
    let annotations = match pod.path(&["metadata", "annotations"]) {
        Child::Present(view) if view.is_certain() => annotation(view),
        Child::Present(view) => annotation(view).or(Truth::Unknown),
        Child::Absent => Truth::False,
        Child::Unknown => Truth::Unknown,
    };
    annotations.or(any_context(pod, profile))
}

fn probes_other_host(container: View<'_>) -> Truth {
    let probes = ["livenessProbe", "readinessProbe", "startupProbe"].map(|probe| container.get(probe));
    let hooks = ["postStart", "preStop"].map(|hook| container.path(&["lifecycle", hook]));
    Truth::any(probes.into_iter().chain(hooks).map(|probe| {
        Truth::any(["httpGet", "tcpSocket"].map(|kind| !is_one_of(probe.get(kind).get("host"), &[""])))
    }))
}

/// Whether a volume is of a type that the restricted level does not have.
fn other_volume(volume: View<'_>) -> Truth {
    const TYPES: [&str; 10] = [
        "name",
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    ];
    let other = volume.members().iter().any(|(field, _)| !TYPES.contains(&field.as_str()));
    match (other, volume.is_certain()) {
        (true, _) => Truth::True,
        (false, true) => Truth::False,
        (false, false) => Truth::Unknown,
    }
}

#[cfg(test)]
mod tests;
