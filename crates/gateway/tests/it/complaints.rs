//! What people complain of with tunnels like this, each with the behaviour that would have spared them.

mod flow;
mod identity;
mod life;
