//! Rights on Secrets themselves.

use super::Scenario;

const fn case(
    name: &'static str,
    lines: &'static [&'static str],
    reads: &'static [&'static str],
) -> Scenario {
    Scenario { name, lines, reads }
}

pub const SCENARIOS: &[&Scenario] = &[
    &case("without a right nothing is read", &[], &[]),
    &case("get reads each Secret of the namespace", &["me at a: get secrets"], &["a/*"]),
    &case("list reads", &["me at a: list secrets"], &["a/*"]),
    &case("watch reads", &["me at a: watch secrets"], &["a/*"]),
    &case("an empty patch reads", &["me at a: patch secrets"], &["a/*"]),
    &case("a dry run of a delete reads", &["me at a: delete secrets"], &["a/*"]),
    &case("a dry run of deletecollection reads", &["me at a: deletecollection secrets"], &["a/*"]),
    &case("update alone does not read", &["me at a: update secrets"], &[]),
    &case("create alone does not read", &["me at a: create secrets"], &[]),
    &case("update and create do not read", &["me at a: update,create secrets"], &[]),
    &case("any verb reads", &["me at a: * secrets"], &["a/*"]),
    &case("any resource reads", &["me at a: get *"], &["a/*"]),
    &case("any group reads", &["me at a: get secrets in *"], &["a/*"]),
    &case("a ClusterRole through a RoleBinding reads there", &["me at @a: get secrets"], &["a/*"]),
    &case("cluster-wide get reads everywhere", &["me at *: get secrets"], &["a/*", "b/*", "c/*"]),
    &case("cluster-wide patch reads everywhere", &["me at *: patch secrets"], &["a/*", "b/*", "c/*"]),
    &case("cluster-wide delete reads everywhere", &["me at *: delete secrets"], &["a/*", "b/*", "c/*"]),
    &case(
        "cluster-wide deletecollection reads namespace by namespace",
        &["me at *: deletecollection secrets"],
        &["a/*", "b/*", "c/*"],
    ),
    &case("get of a name reads that one", &["me at a: get secrets named s0"], &["a/s0"]),
    &case(
        "list of a name reads that one, by a field selector",
        &["me at a: list secrets named s0"],
        &["a/s0"],
    ),
    &case("watch of a name reads that one", &["me at a: watch secrets named s0"], &["a/s0"]),
    &case("patch of a name reads that one", &["me at a: patch secrets named s0"], &["a/s0"]),
    &case("delete of a name reads that one", &["me at a: delete secrets named s0"], &["a/s0"]),
    &case("deletecollection of a name does not read", &["me at a: deletecollection secrets named s0"], &[]),
    &case("update and create of a name do not read", &["me at a: update,create secrets named s0"], &[]),
    &case("two names are two Secrets", &["me at a: get secrets named s0,s1"], &["a/*"]),
    &case("a name that does not exist reads nothing", &["me at a: get secrets named n0"], &[]),
    &case(
        "a name in a ClusterRoleBinding is that name in every namespace",
        &["me at *: list secrets named s1"],
        &["a/s1", "b/s1", "c/s1"],
    ),
    &case(
        "a cluster-wide patch of a name reads it in every namespace",
        &["me at *: patch secrets named s1"],
        &["a/s1", "b/s1", "c/s1"],
    ),
    &case("a star is no name", &["me at a: get,list,patch secrets named *"], &[]),
    &case("a part of a name is no name", &["me at a: get,list,patch secrets named s"], &[]),
    &case("secrets/* is nothing", &["me at a: get,list,watch,patch,delete secrets/*"], &[]),
    &case("*/* is nothing", &["me at a: get,list,watch,patch,delete */*"], &[]),
    &case("*/secrets is nothing", &["me at a: get,list,watch,patch,delete */secrets"], &[]),
    &case("secrets/status is nothing", &["me at a: get,list,watch,patch secrets/status"], &[]),
    &case("*/status is no Secret", &["me at a: get,list,watch,patch */status"], &[]),
    &case("resources are case-sensitive", &["me at a: get,list,watch,patch Secrets"], &[]),
    &case("the singular is nothing", &["me at a: get,list,watch,patch secret"], &[]),
    &case("a version is no group", &["me at a: get,list,watch,patch secrets in v1"], &[]),
    &case(
        "Secrets of another group are others",
        &["me at a: get,list,patch secrets in secrets.example"],
        &[],
    ),
    &case("any resource of another group is none of core", &["me at a: * * in metal3.io"], &[]),
    &case("an own group gives nothing", &["group:dev at a: get secrets"], &[]),
    &case("what everybody may do, I may", &["group:system:authenticated at a: get secrets"], &["a/*"]),
    &case("what each account may do, I may", &["group:system:serviceaccounts at a: get secrets"], &["a/*"]),
    &case(
        "what accounts of my namespace may do, I may",
        &["group:system:serviceaccounts:oracle-b at a: get secrets"],
        &["a/*"],
    ),
    &case(
        "what accounts of another namespace may do, I may not",
        &["group:system:serviceaccounts:oracle-c at a: get secrets"],
        &[],
    ),
    &case(
        "the user of my name is me",
        &["user:system:serviceaccount:oracle-b:a0 at a: get secrets"],
        &["a/*"],
    ),
    &case("a user of half my name is not me", &["user:a0 at a: get secrets"], &[]),
    &case(
        "one rule with a name does not silence another",
        &["me at a: get secrets named n0 + list secrets"],
        &["a/*"],
    ),
    &case(
        "roles of one name in two namespaces stay apart",
        &["role shared at c: get secrets", "role shared at a: get configmaps", "me at a: is shared"],
        &[],
    ),
    &case(
        "an aggregated role holds what it selects",
        &[
            "role all at * selecting oracle-aggregate",
            "role part at * with oracle-aggregate: get secrets",
            "me at @a: is all",
        ],
        &["a/*"],
    ),
    &case(
        "a label adds to the role edit",
        &[
            "role part at * with rbac.authorization.k8s.io/aggregate-to-view: get secrets named s0",
            "me at @a: is view",
        ],
        &["a/s0"],
    ),
    &case("view reads no Secret", &["me at @a: is view"], &[]),
    &case("edit reads Secrets", &["me at @a: is edit"], &["a/*"]),
    &case("admin reads Secrets", &["me at @a: is admin"], &["a/*"]),
    &case("cluster-admin in a namespace reads there", &["me at @a: is cluster-admin"], &["a/*"]),
    &case("cluster-admin reads everything", &["me at *: is cluster-admin"], &["a/*", "b/*", "c/*"]),
];
