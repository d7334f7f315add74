//! What a client is told when it gets no content: the error codes and the JSON body of the distribution
//! specification (`spec.md`, "Error Codes").

use std::fmt;

use serde_json::json;

/// An error code of the distribution specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    BlobUnknown,
    BlobUploadUnknown,
    Denied,
    DigestInvalid,
    ManifestInvalid,
    ManifestUnknown,
    NameInvalid,
    NameUnknown,
    RangeInvalid,
    TooManyRequests,
    Unauthorized,
    Unavailable,
    Unsupported,
}

impl Code {
    /// The code as written on the wire.
    ///
    /// `UNAVAILABLE` is the one that the specification does not list; other registries send it with 503.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BlobUnknown => "BLOB_UNKNOWN",
            Self::BlobUploadUnknown => "BLOB_UPLOAD_UNKNOWN",
            Self::Denied => "DENIED",
            Self::DigestInvalid => "DIGEST_INVALID",
            Self::ManifestInvalid => "MANIFEST_INVALID",
            Self::ManifestUnknown => "MANIFEST_UNKNOWN",
            Self::NameInvalid => "NAME_INVALID",
            Self::NameUnknown => "NAME_UNKNOWN",
            Self::RangeInvalid => "RANGE_INVALID",
            Self::TooManyRequests => "TOOMANYREQUESTS",
            Self::Unauthorized => "UNAUTHORIZED",
            Self::Unavailable => "UNAVAILABLE",
            Self::Unsupported => "UNSUPPORTED",
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The JSON body that says `message` under `code`, to be sent as `application/json`.
pub fn body(code: Code, message: &str) -> String {
    json!({ "errors": [{ "code": code.as_str(), "message": message }] }).to_string()
}

/// The media type of [`body`].
pub const MEDIA_TYPE: &str = "application/json";

#[cfg(test)]
mod tests;
