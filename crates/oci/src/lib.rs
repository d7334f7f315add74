//! What a pull-through cache of OCI images has to know and to decide: names, routes, ranges, freshness,
//! visibility, the disk budget, and what upstreams and nodes say and are told.
//!
//! It knows no socket, no file, no clock and no runtime: bytes and times come as arguments, decisions go out as
//! values. Invariants: no input makes it panic; what was parsed prints as it was written; the bytes of a manifest are
//! looked at and never rewritten.

pub mod budget;
pub mod challenge;
pub mod digest;
pub mod errors;
pub mod fair;
pub mod freshness;
pub mod hosts_toml;
pub mod image;
pub mod link;
pub mod manifest;
pub mod media;
pub mod name;
pub mod network;
pub mod pace;
pub mod page;
pub mod pattern;
pub mod plan;
pub mod range;
pub mod registry;
pub mod route;
pub mod status;
pub mod trust;
pub mod visibility;

pub use budget::{Budget, Limits, Reservation, Room};
pub use digest::{Algorithm, Digest, DigestError, Hasher};
pub use errors::Code;
pub use image::{Image, Target};
pub use manifest::Manifest;
pub use media::MediaType;
pub use name::{NameError, Reference, Repository, Tag};
pub use page::Page;
pub use pattern::Pattern;
pub use registry::{Registry, Upstreams};
pub use route::{Request, Resource, Route, RouteError};
pub use status::Cause;
pub use visibility::{Client, Place, Visibility};
