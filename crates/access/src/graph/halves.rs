//! Parts of conjunctions: what a node holds of what several things are needed for.

use rustc_hash::FxHashMap;

use super::{Node, NodeId, Via, build::Builder, by_name::is_by_name, matches::Rights};
use crate::{Certainty, Fact, Gift, Identity, Need, Place, Power, Scope, Symbol, Target, Template};

const WORDS: usize = 4;

/// A set of halves. With more than 256 of them some share a bit, so that it may say too much, never too little.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mask([u64; WORDS]);

impl Mask {
    fn add(&mut self, half: u16) {
        let bit = usize::from(half) % (64 * WORDS);
        if let Some(word) = self.0.get_mut(bit / 64) {
            *word |= 1 << (bit % 64);
        }
    }

    /// Adds what another holds.
    pub fn join(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(word, other)| *word |= other);
    }

    /// Whether all of another is in it.
    pub fn covers(&self, other: &Self) -> bool {
        self.0.iter().zip(other.0).all(|(word, other)| word & other == other)
    }

    /// What is in both.
    fn both(&self, other: &Self) -> Self {
        let mut both = *self;
        both.0.iter_mut().zip(other.0).for_each(|(word, other)| *word &= other);
        both
    }

    /// Whether it has anything of another.
    pub fn meets(&self, other: &Self) -> bool {
        self.0.iter().zip(other.0).any(|(word, other)| word & other != 0)
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }
}

/// What a node holds of conjunctions, in short.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Holds {
    /// Halves that count for everybody who comes here.
    pub shared: Mask,
    /// Those of them that are held in the whole cluster for all names, so that no other of the kind adds anything.
    pub wide: Mask,
    /// Halves that count for one requester's own requests.
    pub own: Mask,
    /// Whether it writes roles, and holds rules that are worth writing.
    pub writer: bool,
    /// Whether it holds a role, for what is worth something on a role that one holds.
    pub role: bool,
}

impl Holds {
    /// Adds what another holds.
    pub fn join(&mut self, other: &Self) {
        self.shared.join(&other.shared);
        self.wide.join(&other.wide);
        self.own.join(&other.own);
        self.role |= other.role;
        self.writer |= other.writer;
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.shared.is_empty() && self.own.is_empty() && !self.role && !self.writer
    }

    /// Whether it has a part of a conjunction.
    pub fn has_part(&self, of: &Conjunction) -> bool {
        self.shared.meets(&of.shared)
            || self.shared.meets(&of.alone)
            || self.own.meets(&of.alone)
            || (of.of_roles && self.role)
    }

    /// Whether it has every part, perhaps of several requesters.
    pub fn completes(&self, of: &Conjunction) -> bool {
        let mut alone = self.shared;
        alone.join(&self.own);
        self.shared.covers(&of.shared) && alone.covers(&of.alone) && (self.role || !of.of_roles)
    }

    /// Whether all its parts of a conjunction add nothing to what another holds.
    fn is_covered(&self, of: &Conjunction, by: &Self) -> bool {
        let within = |mine: &Mask, needed: &Mask| by.wide.covers(&mine.both(needed));
        within(&self.shared, &of.shared)
            && within(&self.shared, &of.alone)
            && within(&self.own, &of.alone)
            && !(of.of_roles && self.role)
    }
}

/// Whether somebody who writes roles and a role to write come together.
pub fn is_writing_new(local: &Holds, below: &[&Holds]) -> bool {
    let has = |holds: &&Holds| holds.writer || holds.role;
    let mut parts = below.iter().copied().filter(has);
    let (one, more) = (parts.next(), parts.next());
    let done = !has(&local) && more.is_none();
    let all = |of: fn(&Holds) -> bool| of(local) || below.iter().any(|holds| of(holds));
    !(done && one.is_some()) && all(|holds| holds.writer) && all(|holds| holds.role)
}

/// What a template with several needs asks for.
#[derive(Debug, Clone, Copy)]
pub struct Conjunction {
    pub template: u32,
    /// Needs that several may hold, one after the other.
    shared: Mask,
    /// Needs that one requester must hold alone.
    alone: Mask,
    /// Whether a role must be held, too.
    of_roles: bool,
}

impl Conjunction {
    /// Whether it may follow at a node and not already at one of those below. `local`: what the node holds itself.
    /// `requesters`: what each of its identities, with its groups, holds for its own requests.
    pub fn is_new(&self, local: &Holds, below: &[&Holds], requesters: &[Mask]) -> bool {
        let mut all = *local;
        below.iter().for_each(|holds| all.join(holds));
        if !all.completes(self) {
            return false;
        }
        if self.shared.is_empty() && !all.shared.meets(&self.alone) {
            return requesters.iter().any(|own| own.covers(&self.alone));
        }
        let adds = |holds: &Holds| holds.has_part(self);
        let mut parts = below.iter().filter(|holds| adds(holds));
        if let (Some(one), None) = (parts.next(), parts.next())
            && !adds(local)
        {
            return !one.completes(self);
        }
        !below.iter().enumerate().any(|(index, by)| {
            let mut others = below.iter().enumerate().filter(|(other, _)| *other != index);
            by.completes(self)
                && local.is_covered(self, by)
                && others.all(|(_, other)| other.is_covered(self, by))
        })
    }
}

/// The needs of all templates that have several.
#[derive(Debug, Clone, Default)]
pub struct Halves {
    /// The template and the need of each half.
    pub all: Vec<(u32, u8)>,
    by_need: FxHashMap<(u32, u8), u16>,
    /// The templates that have several needs.
    pub conjunctions: Vec<Conjunction>,
    by_power: FxHashMap<Power, Vec<u16>>,
    by_fact: FxHashMap<Fact, Vec<u16>>,
    any_impersonation: Vec<u16>,
    /// What every right in a namespace meets.
    everything: Vec<u16>,
}

impl Halves {
    pub fn new(templates: &[Template]) -> Self {
        let mut halves = Self::default();
        for (template, said) in (0u32..).zip(templates) {
            if said.when.len() < 2 || said.gives == Gift::Nothing {
                continue;
            }
            let joins = matches!(said.gives, Gift::Target(Target::JoinedClusterRole | Target::JoinedRole));
            let of_roles = is_of_roles(&said.gives);
            let (shared, alone) = (Mask::default(), Mask::default());
            let mut conjunction = Conjunction { template, shared, alone, of_roles };
            for (need, wanted) in (0u8..).zip(&said.when) {
                let half = u16::try_from(halves.all.len()).unwrap_or(u16::MAX);
                halves.all.push((template, need));
                halves.by_need.insert((template, need), half);
                let alone = said.alone.contains(&usize::from(need));
                let mask = if alone { &mut conjunction.alone } else { &mut conjunction.shared };
                mask.add(half);
                match wanted {
                    Need::Right { place: Place::Here, .. } if !joins => halves.everything.push(half),
                    Need::Right { .. } => {}
                    Need::Power(power) => halves.by_power.entry(*power).or_default().push(half),
                    Need::Fact(fact) => halves.by_fact.entry(*fact).or_default().push(half),
                    Need::AnyImpersonation => halves.any_impersonation.push(half),
                }
            }
            halves.conjunctions.push(conjunction);
        }
        halves
    }

    /// The half of a need, none for templates with one need only.
    pub fn of(&self, template: u32, need: u8) -> Option<u16> {
        self.by_need.get(&(template, need)).copied()
    }
}

/// Whether a gift is about a role that must be held as well.
fn is_of_roles(gives: &Gift) -> bool {
    matches!(
        gives,
        Gift::Target(
            Target::HeldClusterRole
                | Target::HeldRole
                | Target::ReplacedClusterRole
                | Target::ReplacedRole
                | Target::NewClusterRole
                | Target::NewRole
        )
    )
}

/// A half as a node holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    pub half: u16,
    /// Where it is held.
    pub scope: Scope,
    /// The one name that it is held for.
    pub name: Option<Symbol>,
    /// The rule, none where the node is itself what is needed.
    pub via: Option<Via>,
    pub certainty: Certainty,
    pub hold: Hold,
}

/// For which requests a half counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// For whatever may be held by several identities, one after the other.
    Shared,
    /// For each request of any of one's identities, since it can be given to any of them.
    Free,
    /// For requests of this very identity.
    Own,
}

impl Builder<'_> {
    /// What a node holds, in short.
    pub fn holds_of(&mut self, id: NodeId, node: Node) -> Holds {
        let mut holds = Holds {
            role: matches!(node, Node::Fact(Fact::Role { .. })),
            writer: self.writers.contains_key(&id),
            ..Holds::default()
        };
        self.entries(id, node, &mut |entry| {
            if entry.hold == Hold::Own {
                holds.own.add(entry.half);
                return;
            }
            holds.shared.add(entry.half);
            let everywhere = entry.scope == Scope::Cluster && entry.name.is_none();
            if everywhere && entry.certainty == Certainty::Proven {
                holds.wide.add(entry.half);
            }
        });
        holds
    }

    /// Says each half that a node holds.
    pub fn entries(&mut self, id: NodeId, node: Node, say: &mut dyn FnMut(Entry)) {
        let plain = |half: u16, scope: Scope, hold: Hold| Entry {
            half,
            scope,
            name: None,
            via: None,
            certainty: Certainty::Proven,
            hold,
        };
        match node {
            Node::Fact(Fact::Role { namespace, name, scope }) => {
                if let Some(role) = self.find_role((namespace, name)) {
                    self.role_entries(role, scope, (Rights::Shared, None), say);
                }
            }
            Node::Gained { role, scope } => self.role_entries(role, scope, (Rights::Own, None), say),
            Node::Passed { role, scope, used } => {
                self.role_entries(role, scope, (Rights::Personal, used), say);
            }
            Node::Impersonates => {
                let halves = self.halves.any_impersonation.iter();
                halves.for_each(|half| say(plain(*half, Scope::Cluster, Hold::Free)));
            }
            Node::Fact(Fact::Identity(_)) | Node::Acting(_) | Node::ActingFor { .. } => {
                self.own.get(&id).into_iter().flatten().for_each(|entry| say(*entry));
                self.fact_entries(node, say, &plain);
            }
            Node::Fact(Fact::Everything(scope @ Scope::Namespace(_))) => {
                for half in &self.halves.everything {
                    // Who comes here did so by granting itself everything; whom admission would refuse is not known.
                    let asked = self.halves.all.get(usize::from(*half));
                    let asked = asked.is_some_and(|(template, _)| self.is_asked(*template));
                    let certainty = if asked { Certainty::Assumed } else { Certainty::Proven };
                    say(Entry { certainty, ..plain(*half, scope, Hold::Free) });
                }
                self.fact_entries(node, say, &plain);
            }
            Node::Fact(_) => self.fact_entries(node, say, &plain),
            Node::ActingAsAnyUser => {}
        }
    }

    fn fact_entries(
        &self,
        node: Node,
        say: &mut dyn FnMut(Entry),
        plain: &dyn Fn(u16, Scope, Hold) -> Entry,
    ) {
        let Node::Fact(fact) = node else { return };
        for half in self.halves.by_fact.get(&fact).into_iter().flatten() {
            say(plain(*half, Scope::Cluster, Hold::Free));
        }
        if let Some((power, scope)) = Power::of(&fact) {
            for half in self.halves.by_power.get(&power).into_iter().flatten() {
                say(plain(*half, scope, Hold::Free));
            }
        }
    }

    /// Says the halves of a role, as far as they are such rights. `used`: a name under which no binding can be made any
    /// more.
    fn role_entries(
        &mut self,
        role: u32,
        scope: Scope,
        (rights, used): (Rights, Option<Symbol>),
        say: &mut dyn FnMut(Entry),
    ) {
        let hold = if rights == Rights::Shared { Hold::Shared } else { Hold::Free };
        for (half, found) in &self.matches(role).halves {
            let half = *half;
            if !self.is_among(found, rights) {
                continue;
            }
            let by_name = used.is_some() && found.name == used;
            if by_name && self.template(found.template).is_some_and(is_by_name) {
                continue;
            }
            let Some((at, sure)) = self.need_at(found, scope) else { continue };
            let asked = hold == Hold::Free && self.is_asked(found.template);
            let certainty = if asked { Certainty::Assumed } else { sure };
            let via = Some(Via::Rule { template: found.template, role, rule: found.rule });
            say(Entry { half, scope: at, name: found.name, via, certainty, hold });
        }
    }

    /// Notes what an identity holds of a conjunction by itself.
    pub fn hold(&mut self, holder: NodeId, entry: Entry) {
        self.own.entry(holder).or_default().push(entry);
    }

    /// Notes that an identity impersonates somebody.
    pub fn impersonates(&mut self, holder: NodeId, via: Via, certainty: Certainty) {
        for half in self.halves.any_impersonation.clone() {
            let (scope, hold) = (Scope::Cluster, Hold::Own);
            self.hold(holder, Entry { half, scope, name: None, via: Some(via), certainty, hold });
        }
    }

    /// The implicit groups of an identity, as nodes of the same kind.
    pub fn groups_of(&self, identity: Identity, acting: bool) -> impl Iterator<Item = Node> {
        std::iter::successors(self.group_of(&identity), |group| self.group_of(group))
            .map(move |group| if acting { Node::Acting(group) } else { Node::Fact(Fact::Identity(group)) })
    }
}
