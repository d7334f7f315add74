//! Rights to become somebody else.

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
        "impersonate an account through a RoleBinding",
        &["me at c: impersonate serviceaccounts", "c/a0 at a: get secrets"],
        &["a/*"],
    ),
    &case(
        "impersonate a named account",
        &[
            "me at c: impersonate serviceaccounts named a0",
            "c/a0 at a: get secrets named s0",
            "c/a1 at a: get secrets",
        ],
        &["a/s0"],
    ),
    &case(
        "impersonate accounts of another namespace only there",
        &["me at b: impersonate serviceaccounts", "c/a0 at a: get secrets"],
        &[],
    ),
    &case(
        "impersonate an account that does not exist",
        &["me at c: impersonate serviceaccounts named ghost", "c/ghost at a: get secrets"],
        &["a/*"],
    ),
    &case("impersonate any user is the controller manager", &["me at *: impersonate users"], ALL),
    &case(
        "impersonate a named user",
        &["me at *: impersonate users named ann", "user:ann at a: get secrets", "user:bob at c: get secrets"],
        &["a/*"],
    ),
    &case(
        "impersonate users does not cover accounts",
        &["me at *: impersonate users named system:serviceaccount:oracle-c:a0", "c/a0 at a: get secrets"],
        &[],
    ),
    &case(
        "impersonate users through a RoleBinding is dead",
        &["me at a: impersonate users", "user:ann at a: get secrets"],
        &[],
    ),
    &case(
        "system:masters alone is not impersonated",
        &["me at *: impersonate groups named system:masters"],
        &[],
    ),
    &case(
        "system:masters is impersonated with a second right",
        &[
            "me at *: impersonate groups named system:masters",
            "me at b: impersonate serviceaccounts named a0",
        ],
        ALL,
    ),
    &case(
        "a group is impersonated with any user",
        &[
            "me at *: impersonate groups named dev + impersonate users named bob",
            "group:dev at a: get secrets",
        ],
        &["a/*"],
    ),
    &case(
        "a group is not impersonated by halves of two accounts",
        &[
            "me at *: impersonate groups named dev",
            "me at b: create serviceaccounts/token named a1",
            "b/a1 at c: impersonate serviceaccounts",
            "group:dev at a: get secrets",
        ],
        &[],
    ),
    &case(
        "groups through a RoleBinding are dead",
        &[
            "me at b: impersonate groups named dev + impersonate serviceaccounts",
            "group:dev at a: get secrets",
        ],
        &[],
    ),
    &case("uids and extras impersonate nobody", &["me at *: impersonate uids,userextras"], &[]),
    &case(
        "who is impersonated impersonates nobody",
        &[
            "me at c: impersonate serviceaccounts named a0",
            "c/a0 at *: impersonate users named ann",
            "user:ann at a: get secrets",
        ],
        &[],
    ),
    &case(
        "who has a token impersonates in turn",
        &[
            "me at c: create serviceaccounts/token named a0",
            "c/a0 at *: impersonate users named ann",
            "user:ann at a: get secrets",
        ],
        &["a/*"],
    ),
    &case(
        "who is impersonated gives its right to impersonate away",
        &[
            "me at c: impersonate serviceaccounts named a0",
            "c/a0 at *: impersonate users named ann + create clusterrolebindings in rbac",
            "user:ann at a: get secrets",
        ],
        &["a/*"],
    ),
    &case(
        "a token of each account",
        &["me at c: create serviceaccounts/token", "c/a1 at a: get secrets"],
        &["a/*"],
    ),
    &case(
        "*/token is a token of each account",
        &["me at c: create */token", "c/a1 at a: get secrets"],
        &["a/*"],
    ),
    &case(
        "a token of a named account",
        &[
            "me at c: create serviceaccounts/token named a0",
            "c/a1 at a: get secrets",
            "c/a0 at a: get secrets named s1",
        ],
        &["a/s1"],
    ),
    &case(
        "serviceaccounts/* is no token",
        &["me at c: create serviceaccounts/*", "c/a1 at a: get secrets"],
        &[],
    ),
    &case(
        "create of accounts is no token",
        &["me at c: create serviceaccounts", "c/a1 at a: get secrets"],
        &[],
    ),
    &case(
        "a token of an account that is gone",
        &["me at c: create serviceaccounts/token", "c/ghost at a: get secrets"],
        &[],
    ),
    &case(
        "an account that is gone is made, with its token",
        &[
            "me at c: create serviceaccounts + create serviceaccounts/token named ghost",
            "c/ghost at a: get secrets",
        ],
        &["a/*"],
    ),
    &case(
        "four steps",
        &[
            "me at b: create serviceaccounts/token named a1",
            "b/a1 at c: impersonate serviceaccounts named a0",
            "c/a0 at a: create rolebindings in rbac + bind clusterroles in rbac named edit",
        ],
        &["a/*"],
    ),
    &case(
        "a token Secret is made and read",
        &["me at c: create,get secrets", "c/a1 at a: get secrets"],
        &["a/*", "c/*"],
    ),
    &case(
        "a token Secret is made and read by patch",
        &["me at c: create,patch secrets", "c/a1 at a: get secrets"],
        &["a/*", "c/*"],
    ),
    &case(
        "a token Secret is made and read by deletecollection",
        &["me at c: create,deletecollection secrets", "c/a1 at a: get secrets"],
        &["a/*", "c/*"],
    ),
    &case(
        "a token Secret that is made is not read by update",
        &["me at c: create,update secrets", "c/a1 at a: get secrets"],
        &[],
    ),
    &case(
        "halves of a token Secret may be two accounts'",
        &[
            "me at c: create secrets",
            "me at b: create serviceaccounts/token named a1",
            "b/a1 at c: get secrets",
            "c/a1 at a: get secrets",
        ],
        &["a/*", "c/*"],
    ),
    &case(
        "a token Secret of a free name",
        &["me at c: create secrets + get secrets named n0", "c/a1 at a: get secrets"],
        &["a/*"],
    ),
    &case(
        "a token Secret of a name that is taken",
        &["me at c: create secrets + get secrets named s0", "c/a1 at a: get secrets"],
        &["c/s0"],
    ),
    &case(
        "a token Secret in place of another",
        &["me at c: create secrets + delete secrets named s0", "c/a1 at a: get secrets"],
        &["a/*", "c/s0"],
    ),
    &case(
        "a token Secret made by its name only",
        &["me at c: create,patch secrets named n0", "c/a1 at a: get secrets"],
        &["a/*"],
    ),
    &case(
        "a token Secret that is there is read",
        &["token c/a1", "me at c: get secrets named t0", "c/a1 at a: get secrets"],
        &["a/*", "c/t0"],
    ),
    &case(
        "a token Secret that is there is pointed at another account by patch",
        &["token c/a0", "me at c: patch secrets named t0", "c/a1 at a: get secrets"],
        &["a/*", "c/t0"],
    ),
    &case(
        "a token Secret is pointed elsewhere by update, and read",
        &["token c/a0", "me at c: update,get secrets named t0", "c/a1 at a: get secrets"],
        &["a/*", "c/t0"],
    ),
    &case(
        "a token Secret that is pointed elsewhere by update is not read by it",
        &["token c/a0", "me at c: update secrets named t0", "c/a1 at a: get secrets"],
        &[],
    ),
    &case(
        "a Secret without a token is not pointed anywhere",
        &["me at c: patch secrets named s0", "c/a1 at a: get secrets"],
        &["c/s0"],
    ),
    &case(
        "a certificate for any user",
        &[
            "me at *: create certificatesigningrequests in certificates + update certificatesigningrequests/approval in certificates + approve signers in certificates named kubernetes.io/kube-apiserver-client",
        ],
        ALL,
    ),
    &case(
        "a certificate by a domain of signers",
        &[
            "me at *: create certificatesigningrequests in certificates + patch certificatesigningrequests/approval in certificates + approve signers in certificates named kubernetes.io/*",
        ],
        ALL,
    ),
    &case(
        "a certificate by a request of the name that may be approved",
        &[
            "me at *: create certificatesigningrequests in certificates + update certificatesigningrequests/approval in certificates named n0 + approve signers in certificates",
        ],
        ALL,
    ),
    &case(
        "no certificate without approve",
        &[
            "me at *: create certificatesigningrequests in certificates + update certificatesigningrequests/approval in certificates",
        ],
        &[],
    ),
    &case(
        "no certificate without the approval",
        &["me at *: create certificatesigningrequests in certificates + approve signers in certificates"],
        &[],
    ),
    &case(
        "no certificate through a RoleBinding",
        &[
            "me at a: create certificatesigningrequests in certificates + update certificatesigningrequests/approval in certificates + approve signers in certificates",
        ],
        &[],
    ),
    &case(
        "no certificate with approval and approve of two accounts",
        &[
            "me at *: create certificatesigningrequests in certificates + update certificatesigningrequests/approval in certificates",
            "me at b: create serviceaccounts/token named a1",
            "b/a1 at *: approve signers in certificates",
        ],
        &[],
    ),
    &case(
        "the message of a policy shows what may be updated",
        &[
            "me at *: create validatingadmissionpolicies in admission + create validatingadmissionpolicybindings in admission",
            "me at a: update secrets named s0",
        ],
        &["a/s0"],
    ),
    &case(
        "a policy alone shows nothing to its author",
        &[
            "me at *: create validatingadmissionpolicies in admission + create validatingadmissionpolicybindings in admission",
        ],
        &[],
    ),
    &case(
        "a policy without a binding shows nothing",
        &["me at *: create validatingadmissionpolicies in admission", "me at a: update secrets"],
        &[],
    ),
    &case(
        "an account that is gone is made, with a token Secret of a free name",
        &[
            "me at c: create serviceaccounts + create secrets + get secrets named n0",
            "c/ghost at a: get secrets",
        ],
        &["a/*"],
    ),
    &case(
        "an account that is gone is made, and a token Secret pointed at it",
        &[
            "token c/a0",
            "me at c: create serviceaccounts + patch secrets named t0",
            "c/ghost at a: get secrets",
        ],
        &["a/*", "c/t0"],
    ),
];
