//! Impersonation for certain requests only: whom, and what for.

use super::Scenario;

const fn case(
    name: &'static str,
    lines: &'static [&'static str],
    reads: &'static [&'static str],
) -> Scenario {
    Scenario { name, lines, reads }
}

pub const SCENARIOS: &[&Scenario] = &[
    &case(
        "an account is impersonated for what both may do",
        &[
            "me at c: impersonate:serviceaccount serviceaccounts in authentication named a0",
            "me at a: impersonate-on:serviceaccount:get secrets",
            "c/a0 at a: get,list secrets named s0",
        ],
        &["a/s0"],
    ),
    &case(
        "what for is where the request is",
        &[
            "me at *: impersonate:serviceaccount serviceaccounts in authentication",
            "me at b: impersonate-on:serviceaccount:get secrets",
            "c/a0 at *: get secrets",
        ],
        &["b/*"],
    ),
    &case(
        "what for may name an object",
        &[
            "me at *: impersonate:serviceaccount serviceaccounts in authentication named a0 + impersonate-on:serviceaccount:get secrets named s1",
            "c/a0 at a: get secrets",
        ],
        &["a/s1"],
    ),
    &case(
        "another verb is another request",
        &[
            "me at *: impersonate:serviceaccount serviceaccounts in authentication named a0 + impersonate-on:serviceaccount:list secrets",
            "c/a0 at a: get secrets",
        ],
        &[],
    ),
    &case(
        "any verb on Secrets is what for, too",
        &[
            "me at c: impersonate:serviceaccount serviceaccounts in authentication",
            "me at a: * secrets named s0",
            "c/a0 at a: get secrets",
        ],
        &["a/s0"],
    ),
    &case(
        "whom alone reads nothing",
        &["me at *: impersonate:serviceaccount serviceaccounts in authentication", "c/a0 at a: get secrets"],
        &[],
    ),
    &case(
        "what for alone reads nothing",
        &["me at *: impersonate-on:serviceaccount:get secrets", "c/a0 at a: get secrets"],
        &[],
    ),
    &case(
        "whom of another group is nobody",
        &[
            "me at *: impersonate:serviceaccount serviceaccounts + impersonate-on:serviceaccount:get secrets",
            "c/a0 at a: get secrets",
        ],
        &[],
    ),
    &case(
        "the modes do not mix",
        &[
            "me at *: impersonate:serviceaccount serviceaccounts in authentication + impersonate-on:user-info:get secrets",
            "c/a0 at a: get secrets",
        ],
        &[],
    ),
    &case(
        "halves of two accounts do not add up for constrained impersonation",
        &[
            "me at *: impersonate:serviceaccount serviceaccounts in authentication",
            "me at c: create serviceaccounts/token named a1",
            "c/a1 at *: impersonate-on:serviceaccount:get secrets",
            "c/a0 at a: get secrets",
        ],
        &[],
    ),
    &case(
        "a user is impersonated for what both may do",
        &[
            "me at *: impersonate:user-info users in authentication named ann + impersonate-on:user-info:get secrets",
            "user:ann at a: get secrets",
            "user:bob at c: get secrets",
        ],
        &["a/*"],
    ),
    &case(
        "any user is the controller manager here, too",
        &["me at *: impersonate:user-info users in authentication + impersonate-on:user-info:list secrets"],
        &["a/*", "b/*", "c/*"],
    ),
    &case(
        "users through a RoleBinding are nobody",
        &[
            "me at a: impersonate:user-info users in authentication + impersonate-on:user-info:get secrets",
            "user:ann at a: get secrets",
        ],
        &[],
    ),
    &case(
        "an account is no user",
        &[
            "me at *: impersonate:user-info users in authentication named system:serviceaccount:oracle-c:a0 + impersonate-on:user-info:get secrets",
            "c/a0 at a: get secrets named s0",
        ],
        &[],
    ),
    &case(
        "a group comes with a user",
        &[
            "me at *: impersonate:user-info users in authentication named bob + impersonate:user-info groups in authentication named dev + impersonate-on:user-info:get secrets",
            "group:dev at a: get secrets",
        ],
        &["a/*"],
    ),
    &case(
        "a group alone is nobody",
        &[
            "me at *: impersonate:user-info groups in authentication + impersonate-on:user-info:get secrets",
            "group:dev at a: get secrets",
        ],
        &[],
    ),
    &case(
        "system:masters is not impersonated for anything",
        &[
            "me at *: impersonate:user-info users in authentication named bob + impersonate:user-info groups in authentication named system:masters + impersonate-on:user-info:get secrets",
        ],
        &[],
    ),
    &case(
        "a token is asked for as another account",
        &[
            "me at c: impersonate:serviceaccount serviceaccounts in authentication named a0",
            "me at c: impersonate-on:serviceaccount:create serviceaccounts/token",
            "c/a0 at c: create serviceaccounts/token",
            "c/a1 at a: get secrets",
        ],
        &["a/*"],
    ),
    &case(
        "what a request is checked for later is the other one's own",
        &[
            "role reader at *: get secrets",
            "me at c: impersonate:serviceaccount serviceaccounts in authentication named a0",
            "me at a: impersonate-on:serviceaccount:create rolebindings in rbac",
            "c/a0 at a: create rolebindings in rbac + bind clusterroles in rbac named reader",
        ],
        &["a/*"],
    ),
    &case(
        "the request itself must be allowed to both",
        &[
            "me at c: impersonate:serviceaccount serviceaccounts in authentication named a0",
            "me at a: impersonate-on:serviceaccount:bind clusterroles in rbac",
            "c/a0 at a: create rolebindings in rbac + bind clusterroles in rbac",
        ],
        &[],
    ),
    &case(
        "an account that does not exist is impersonated for certain requests",
        &[
            "me at *: impersonate:serviceaccount serviceaccounts in authentication named ghost + impersonate-on:serviceaccount:get secrets",
            "c/ghost at a: get secrets",
        ],
        &["a/*"],
    ),
];
