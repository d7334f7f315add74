//! Rights on roles and bindings.

use super::Scenario;

const fn case(
    name: &'static str,
    lines: &'static [&'static str],
    reads: &'static [&'static str],
) -> Scenario {
    Scenario { name, lines, reads }
}

const ALL: &[&str] = &["a/*", "b/*", "c/*"];

pub const SCENARIOS: &[&Scenario] = &[
    &case(
        "writing bindings alone grants nothing",
        &["me at a: create,update,patch rolebindings in rbac"],
        &[],
    ),
    &case("bind alone grants nothing", &["me at a: bind clusterroles in rbac"], &[]),
    &case("bind on bindings grants nothing", &["me at a: create,bind rolebindings in rbac"], &[]),
    &case(
        "role-grantor: bind through a RoleBinding grants in that namespace",
        &["me at @a: create rolebindings in rbac + bind clusterroles in rbac"],
        &["a/*"],
    ),
    &case(
        "bind of a named role grants what it holds",
        &[
            "role reader at *: get secrets named s1",
            "me at a: create rolebindings in rbac + bind clusterroles in rbac named reader",
        ],
        &["a/s1"],
    ),
    &case(
        "bind of a role that holds nothing grants nothing",
        &["me at a: create rolebindings in rbac + bind clusterroles in rbac named view"],
        &[],
    ),
    &case(
        "bind of Roles grants the Roles of the namespace",
        &[
            "role reader at a: get secrets named s0",
            "me at a: create rolebindings in rbac + bind roles in rbac",
        ],
        &["a/s0"],
    ),
    &case(
        "bind halves may come from two bindings",
        &["me at a: create rolebindings in rbac", "me at *: bind clusterroles in rbac"],
        &["a/*"],
    ),
    &case(
        "a named create of bindings grants nothing",
        &["me at a: create rolebindings in rbac named n0 + bind clusterroles in rbac"],
        &[],
    ),
    &case(
        "a named create grants where patch makes the binding",
        &["me at a: create,patch rolebindings in rbac named n0 + bind clusterroles in rbac"],
        &["a/*"],
    ),
    &case(
        "a patch joins the bindings that there are, with bind",
        &["user:ann at a: get secrets", "me at a: patch rolebindings in rbac + bind roles in rbac"],
        &["a/*"],
    ),
    &case(
        "a patch of a named binding joins that one",
        &[
            "user:ann at a: get secrets named s0",
            "user:bob at a: get secrets named s1",
            "me at a: patch rolebindings in rbac named b0 + bind roles in rbac",
        ],
        &["a/s0"],
    ),
    &case(
        "a patch without bind joins nothing",
        &["user:ann at a: get secrets", "me at a: patch,update rolebindings in rbac"],
        &[],
    ),
    &case(
        "a patch with bind cannot change the role of a binding",
        &[
            "user:ann at a: get configmaps",
            "me at a: patch,update rolebindings in rbac + bind clusterroles,roles in rbac",
        ],
        &[],
    ),
    &case(
        "create of ClusterRoleBindings alone grants nothing",
        &["me at *: create clusterrolebindings in rbac"],
        &[],
    ),
    &case(
        "bind cluster-wide grants everywhere",
        &[
            "role reader at *: get secrets",
            "me at *: create clusterrolebindings in rbac + bind clusterroles in rbac named reader",
        ],
        ALL,
    ),
    &case(
        "bind through a RoleBinding does not grant cluster-wide",
        &["me at *: create clusterrolebindings in rbac", "me at a: bind clusterroles in rbac"],
        &[],
    ),
    &case("escalate alone grants nothing", &["me at a: escalate roles in rbac"], &[]),
    &case("writing one's own Role grants nothing more", &["me at a: update,patch roles in rbac"], &[]),
    &case(
        "escalate widens one's own Role",
        &["me at a: patch roles in rbac + escalate roles in rbac"],
        &["a/*"],
    ),
    &case(
        "escalate of a name widens that Role",
        &["me at a: get configmaps", "me at a: patch,escalate roles in rbac named r0"],
        &["a/*"],
    ),
    &case(
        "escalate of the name of an unbound Role grants nothing",
        &["role other at a: get configmaps", "me at a: patch,escalate roles in rbac named other"],
        &[],
    ),
    &case(
        "escalate does not stand in for bind",
        &["me at a: create roles in rbac + escalate roles in rbac + create rolebindings in rbac"],
        &[],
    ),
    &case(
        "a new Role with any rule, bound by bind on roles",
        &["me at a: create,escalate roles in rbac + create rolebindings in rbac + bind roles in rbac"],
        &["a/*"],
    ),
    &case(
        "a new Role where a binding to a Role that is gone names me",
        &["me at a: create,escalate roles in rbac", "me at a: is n0"],
        &["a/*"],
    ),
    &case(
        "escalate through a RoleBinding does not widen ClusterRoles",
        &["me at @a: patch,escalate clusterroles in rbac"],
        &[],
    ),
    &case(
        "escalate on ClusterRoles widens what everybody holds",
        &["me at *: patch,escalate clusterroles in rbac"],
        ALL,
    ),
    &case(
        "escalate on one ClusterRole widens the aggregated role that I hold",
        &[
            "role other at *: get configmaps",
            "me at *: patch,escalate clusterroles in rbac named other",
            "me at @a: is view",
        ],
        &["a/*"],
    ),
    &case(
        "a new ClusterRole widens the aggregated role that I hold",
        &["me at *: create,escalate clusterroles in rbac", "me at @a: is view"],
        &["a/*"],
    ),
    &case(
        "a Role is made anew with any rule",
        &[
            "me at a: get configmaps",
            "me at a: delete roles in rbac named r0 + create,escalate roles in rbac",
        ],
        &["a/*"],
    ),
    &case(
        "nobody makes the very Role anew that lets it do so",
        &["me at a: delete,create,escalate roles in rbac"],
        &[],
    ),
    &case(
        "a role that I hold may be given to an account that has bind",
        &[
            "me at a: create rolebindings in rbac + create serviceaccounts/token named a1",
            "a/a1 at a: bind clusterroles in rbac",
        ],
        &["a/*"],
    ),
    &case(
        "two accounts do not add up for one request",
        &[
            "user:ann at a: get secrets",
            "me at a: patch rolebindings in rbac named b0",
            "me at b: create serviceaccounts/token named a1",
            "b/a1 at a: bind roles in rbac",
        ],
        &[],
    ),
    &case(
        "the name of a binding serves one request, so that halves of two accounts do not add up",
        &[
            "me at a: create,patch rolebindings in rbac named n0 + create serviceaccounts/token named a1",
            "a/a1 at a: bind clusterroles in rbac",
        ],
        &[],
    ),
    &case(
        "a name serves whichever role may be bound",
        &[
            "role reader at a: get secrets named s1",
            "role useless at a: get configmaps",
            "me at a: create,patch rolebindings in rbac named n0 + bind roles in rbac",
        ],
        &["a/s1"],
    ),
    &case(
        "rules that one holds are written into a Role of another",
        &[
            "me at c: impersonate serviceaccounts named a0",
            "me at a: get configmaps",
            "c/a0 at a: impersonate serviceaccounts named a1 + patch roles in rbac named r1",
            "a/a1 at b: get secrets",
        ],
        &["b/*"],
    ),
    &case(
        "rules that one holds are written into a ClusterRole of another",
        &[
            "me at c: impersonate serviceaccounts named a0",
            "me at *: get configmaps",
            "c/a0 at *: impersonate users named ann + patch clusterroles in rbac named r1",
            "user:ann at a: get secrets",
        ],
        &["a/*"],
    ),
    &case(
        "rules that one holds go to another by aggregation",
        &[
            "me at c: impersonate serviceaccounts named a0",
            "me at @b: is view",
            "c/a0 at *: impersonate serviceaccounts named a1 + create clusterroles in rbac",
            "b/a1 at a: get secrets",
        ],
        &["a/*"],
    ),
];
