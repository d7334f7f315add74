//! The analyser's verbs: who reaches which Secret, by which way, and what is wrong with it.
//!
//! [`verbs`] reads and asks; the documents of `bailey-access` come back, and pure modules make of them what people and
//! programs are told: [`report`], [`diff`], [`gate`], [`render`].

pub mod args;
mod baseline;
mod changes;
mod cover;
mod diff;
mod document;
mod explain;
mod fingerprint;
mod gate;
mod html;
mod input;
mod render;
mod report;
#[cfg(test)]
mod samples;
mod schema;
mod select;
mod unexplained;
pub mod verbs;
mod waivers;
mod what_if;
mod words;

pub use schema::schemas;
