//! The schema of a catalogue file, and an attack with its names filled in.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::bindings::substitute;
use crate::encoding::push_query_component;
use crate::{Bindings, Error, Rail, Result};

/// Holds one attack of the catalogue, its placeholders still in place.
#[derive(Debug, Clone)]
pub struct Attack {
    document: Value,
    definition: Definition,
}

impl Attack {
    /// Reads one file; `stem` is its name without the extension.
    pub fn parse(stem: &str, text: &str) -> Result<Self> {
        let document: Value = serde_saphyr::from_str(text)
            .map_err(|source| Error::Yaml { file: stem.to_owned(), source: Box::new(source) })?;
        let definition = Definition::from_document(stem, &document)?;
        if definition.id != stem {
            return Err(Error::FileName { file: stem.to_owned(), id: definition.id });
        }
        Ok(Self { document, definition })
    }

    /// Returns the attack's id, which is also its file name.
    pub fn id(&self) -> &str {
        &self.definition.id
    }

    /// Returns what the file says, its placeholders still in place.
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// Fills in the names of one management cluster.
    pub fn render(&self, bindings: &Bindings) -> Result<RenderedAttack> {
        let document = substitute(self.id(), &self.document, bindings)?;
        Ok(RenderedAttack { definition: Definition::from_document(self.id(), &document)? })
    }
}

/// Holds an attack that is ready to be sent.
#[derive(Debug, Clone)]
pub struct RenderedAttack {
    definition: Definition,
}

impl RenderedAttack {
    /// Returns the attack's id.
    pub fn id(&self) -> &str {
        &self.definition.id
    }

    /// Returns what the file says, its placeholders filled in.
    pub fn definition(&self) -> &Definition {
        &self.definition
    }
}

/// Is the content of a catalogue file.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Definition {
    /// In kebab case, equal to the file name.
    pub id: String,
    /// One line that a person understands.
    pub title: String,
    /// What harm it does.
    pub why: String,
    /// Where the attack is known from.
    pub source: String,
    pub actor: Actor,
    /// What must be installed for the attack to mean anything.
    pub requires: Option<Requirement>,
    /// Everything that stops it when Bailey is installed.
    pub rails: Vec<Rail>,
    pub steps: Vec<Step>,
    /// All must hold.
    pub success: Vec<Success>,
    /// Sent by the platform afterwards, whatever happened.
    #[serde(default)]
    pub cleanup: Vec<Request>,
    /// The variant for a live cluster, which changes nothing.
    pub verify: Verify,
}

impl Definition {
    fn from_document(file: &str, document: &Value) -> Result<Self> {
        let definition: Self = serde_json::from_value(document.clone())
            .map_err(|source| Error::Schema { file: file.to_owned(), source })?;
        check_conditions(file, "success", &definition.success, definition.steps.len())?;
        let verify = &definition.verify;
        check_conditions(file, "verify.success", &verify.success, verify.steps.len())?;
        Ok(definition)
    }
}

fn check_conditions(file: &str, field: &'static str, success: &[Success], count: usize) -> Result<()> {
    let file = || file.to_owned();
    if success.is_empty() {
        return Err(Error::NoCondition { file: file(), field });
    }
    let outside = success.iter().find(|condition| condition.step == 0 || condition.step > count);
    match outside {
        Some(condition) => Err(Error::StepNumber { file: file(), field, step: condition.step, count }),
        None => Ok(()),
    }
}

/// Says who attacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Actor {
    /// A person in the tenant's installer group.
    Installer,
    /// A person in the tenant's developer group.
    Developer,
    /// The ServiceAccount `automation` in the tenant's namespace.
    Automation,
}

impl Actor {
    /// Returns the user name and the groups to impersonate; `person` is any name for a human actor.
    pub fn subject(self, bindings: &Bindings, person: &str) -> (String, Vec<String>) {
        let authenticated = "system:authenticated".to_owned();
        let namespace = &bindings.tenant_namespace;
        match self {
            Self::Installer => (person.to_owned(), vec![bindings.tenant_group.clone(), authenticated]),
            Self::Developer => (person.to_owned(), vec![bindings.tenant_developers.clone(), authenticated]),
            Self::Automation => (
                format!("system:serviceaccount:{namespace}:automation"),
                vec![
                    "system:serviceaccounts".to_owned(),
                    format!("system:serviceaccounts:{namespace}"),
                    authenticated,
                ],
            ),
        }
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Installer => "installer",
            Self::Developer => "developer",
            Self::Automation => "automation",
        })
    }
}

/// Names something that must be installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Requirement {
    /// Bailey itself: the attack is on its own objects.
    Bailey,
}

/// Is one request and who sends it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Step {
    /// The attacker if absent.
    #[serde(default, rename = "as")]
    pub identity: Identity,
    pub request: Request,
    /// Repeats the request until its answer satisfies this.
    pub until: Option<Until>,
    /// Goes on even if the request is not accepted.
    #[serde(default)]
    pub optional: bool,
}

/// Says who sends a step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Identity {
    /// The actor of the attack.
    #[default]
    Attacker,
    /// A member of `system:masters`, who prepares (before the attacker's first step) or looks (after it).
    Platform,
    /// A ServiceAccount whose token the attacker asks for; a refused token is the answer of this step.
    Account(AccountName),
}

/// Names a ServiceAccount, written `NAMESPACE/NAME`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct AccountName {
    pub namespace: String,
    pub name: String,
}

impl TryFrom<String> for AccountName {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Self, String> {
        match text.split_once('/') {
            Some((namespace, name)) => Ok(Self { namespace: namespace.to_owned(), name: name.to_owned() }),
            None => Err(format!("`{text}` is not NAMESPACE/NAME")),
        }
    }
}

/// Is one HTTP request to the API server.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Request {
    pub method: Method,
    pub path: String,
    #[serde(default)]
    pub query: BTreeMap<String, String>,
    pub content_type: Option<String>,
    /// A string is sent as it is, anything else as JSON.
    pub body: Option<Value>,
    /// For impersonation.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
}

impl Request {
    /// Returns the path with the encoded query.
    pub fn path_and_query(&self) -> String {
        let mut target = self.path.clone();
        for (index, (key, value)) in self.query.iter().enumerate() {
            target.push(if index == 0 { '?' } else { '&' });
            push_query_component(&mut target, key);
            target.push('=');
            push_query_component(&mut target, value);
        }
        target
    }

    /// Returns the content type: a merge patch for PATCH and JSON otherwise, unless the file says more.
    pub fn content_type(&self) -> &str {
        let default = match self.method {
            Method::Patch => "application/merge-patch+json",
            _ => "application/json",
        };
        self.content_type.as_deref().unwrap_or(default)
    }

    /// Returns the bytes of the body, empty if there is none.
    pub fn body(&self) -> Vec<u8> {
        match &self.body {
            None => Vec::new(),
            Some(Value::String(text)) => text.clone().into_bytes(),
            Some(value) => value.to_string().into_bytes(),
        }
    }
}

/// Is an HTTP method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

impl Method {
    /// Returns the method as it is sent.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// Bounds how long a step is repeated.
#[derive(Debug, Clone, Deserialize)]
pub struct Until {
    pub seconds: u64,
    /// A JSON pointer to the part of the answer that is looked at; all of it if absent.
    pub at: Option<String>,
    #[serde(flatten)]
    pub holds: Holds,
}

/// Is one condition for success.
#[derive(Debug, Clone, Deserialize)]
pub struct Success {
    /// Counted from 1.
    pub step: usize,
    /// A JSON pointer to the part of the answer that is looked at; all of it if absent.
    pub at: Option<String>,
    #[serde(flatten)]
    pub holds: Holds,
}

/// Says what must hold of an answer.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Holds {
    /// The status is (not) 2xx.
    Accepted(bool),
    /// Neither authorization nor admission refused it (or one did).
    Authorized(bool),
    /// The text appears, as it is or in base64.
    Contains(String),
    /// The value is exactly this.
    Equals(Value),
    /// The answer is accepted and the value is (not) missing.
    Absent(bool),
    /// A review allows it.
    Allowed(bool),
}

/// Is the variant of an attack that changes nothing.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Verify {
    /// All sent by impersonation of the actor.
    pub steps: Vec<Check>,
    /// All must hold for the attack to count as possible.
    pub success: Vec<Success>,
}

/// Is one question to a live cluster.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Check {
    /// A dry run, a read, or a request that fails after admission because its target is absent.
    Request(Request),
    /// What no request can show without doing it.
    Review(Review),
}

/// Names an access to ask a SubjectAccessReview about.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Review {
    pub verb: String,
    #[serde(default)]
    pub group: String,
    pub resource: String,
    pub subresource: Option<String>,
    pub namespace: Option<String>,
    pub name: Option<String>,
}

impl Review {
    /// Is where a review is posted to.
    pub const PATH: &'static str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

    /// Returns the SubjectAccessReview for one subject.
    pub fn body(&self, user: &str, groups: &[String]) -> Value {
        json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": user,
                "groups": groups,
                "resourceAttributes": {
                    "verb": self.verb,
                    "group": self.group,
                    "resource": self.resource,
                    "subresource": self.subresource.clone().unwrap_or_default(),
                    "namespace": self.namespace.clone().unwrap_or_default(),
                    "name": self.name.clone().unwrap_or_default(),
                },
            },
        })
    }
}
