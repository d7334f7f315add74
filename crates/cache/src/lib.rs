//! The pull-through cache of OCI images.

