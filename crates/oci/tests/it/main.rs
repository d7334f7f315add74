//! Hostile input for every parser: good inputs with random damage. Nothing may panic, and nothing may take for ever.

#![allow(clippy::unwrap_used, reason = "clippy knows test functions, not the functions that they call")]

mod damage;
