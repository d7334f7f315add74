//! Conjunctions: what follows for a node from several things that it reaches.
//!
//! Each is looked for where its parts come together, when all that lies below is closed already; whoever reaches that
//! node has the edge, too. Some parts must be held by one requester alone, since the API server checks them for one
//! request: those that were gained on the way count for each of one's identities, since they can be given to any; those
//! of an identity's own bindings, and of its groups, for its own requests only.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    Holds, Input, Joint, Node, NodeId, Via,
    build::Builder,
    by_name::is_by_name,
    halves::{Conjunction, Entry, Hold},
    reached::Reached,
    reads::Reader,
};
use crate::{Certainty, Fact, Gift, Named, Need, Place, Scope, Symbol, Target, Template, rbac::RoleKey};

/// A half, and who holds it.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    pub entry: Entry,
    pub node: NodeId,
}

/// All that is held of one template.
#[derive(Debug, Default)]
pub struct Parts {
    /// What counts for everybody, by need.
    pub shared: FxHashMap<u8, Vec<Part>>,
    /// What counts for an identity's own requests, by identity.
    pub own: FxHashMap<NodeId, Vec<(u8, Part)>>,
}

impl Parts {
    /// Adds what counts for everybody, unless it is held in the whole cluster for all names already.
    fn add_shared(&mut self, need: u8, part: Part) {
        let is_wide = |part: &Part| part.entry.scope == Scope::Cluster && part.entry.name.is_none();
        let parts = self.shared.entry(need).or_default();
        match parts.first() {
            Some(first) if is_wide(first) => {}
            _ if is_wide(&part) => *parts = vec![part],
            _ => parts.push(part),
        }
    }
}

/// Where a template is met, and for which name.
type Spot = (Scope, Option<Symbol>);
/// What is given: the role that must be held for it, the gift, how sure.
type Gifts = Vec<(Option<NodeId>, NodeId, Certainty)>;

/// What was found at nodes.
#[derive(Debug, Default)]
pub struct Met {
    /// Where new edges lead.
    pub given: Vec<NodeId>,
    /// Whether every right in the cluster is reached.
    pub full: bool,
    /// Whether nothing was looked for, since too much is reached.
    pub put_off: bool,
}

/// A search for conjunctions at one node.
pub struct Meeting {
    /// Where the edges start.
    pub at: NodeId,
    pub least: Certainty,
    pub reached: Reached,
    /// What was given.
    pub given: Vec<NodeId>,
}

impl Builder<'_> {
    /// Finds what follows from the things together that these nodes, which reach each other, reach. The edges are made.
    /// `most`: how many nodes it may come by, else it is put off.
    pub fn meet(&mut self, members: &[NodeId], least: Certainty, most: usize) -> Met {
        let is_identity = |node: &&NodeId| {
            matches!(self.made.nodes.get_index(**node as usize), Some((_, Node::Fact(Fact::Identity(_)))))
        };
        let Some(&at) = members.iter().find(is_identity).or(members.first()) else {
            return Default::default();
        };
        let before = self.reads.set(Some(Reader::Meeting(at)));
        let met = self.meet_at(at, least, most);
        self.reads.set(before);
        met
    }

    fn meet_at(&mut self, at: NodeId, least: Certainty, most: usize) -> Met {
        self.set_out();
        let reached = Reached { left: most, ..Reached::default() };
        let mut meeting = Meeting { at, least, reached, given: Vec::new() };
        self.walk(at, least, &mut meeting.reached);
        if meeting.reached.left == 0 {
            return Met { put_off: true, ..Met::default() };
        }
        let mut known = usize::MAX;
        while known != meeting.given.len()
            && meeting.reached.left > 0
            && !self.is_reached(Fact::Everything(Scope::Cluster))
        {
            known = meeting.given.len();
            let mut parts = self.parts(&meeting.reached, least);
            let state = self.state;
            for (template, said) in (0u32..).zip(state.templates.iter()) {
                if meeting.reached.left == 0 {
                    break;
                }
                if let Some(parts) = parts.remove(&template) {
                    self.meet_template(template, said, &parts, &mut meeting);
                }
            }
            // Others are put off to the last round.
            if most == usize::MAX {
                self.write_roles(&mut meeting);
            }
        }
        let full = self.is_reached(Fact::Everything(Scope::Cluster));
        Met { given: meeting.given, full, put_off: meeting.reached.left == 0 && !full }
    }

    /// What was reached of each template of which every part was.
    fn parts(&mut self, reached: &Reached, least: Certainty) -> FxHashMap<u32, Parts> {
        let mut held = Holds::default();
        for carrier in &reached.carriers {
            if let Some(holds) = self.made.holds.get(*carrier as usize) {
                held.join(holds);
            }
        }
        held.role = !reached.roles.is_empty();
        let complete = self.halves.conjunctions.iter().filter(|of| held.completes(of));
        let complete: Vec<Conjunction> = complete.copied().collect();
        let mut parts: FxHashMap<u32, Parts> =
            complete.iter().map(|of| (of.template, Parts::default())).collect();
        let mut found = Vec::new();
        for &carrier in &reached.carriers {
            let holds = self.made.holds.get(carrier as usize);
            let matters = holds.is_some_and(|holds| complete.iter().any(|of| holds.has_part(of)));
            if let Some((_, node)) = self.made.nodes.get_index(carrier as usize).filter(|_| matters).copied()
            {
                self.entries(carrier, node, &mut |entry| found.push(Part { entry, node: carrier }));
            }
        }
        for part in found.into_iter().filter(|part| part.entry.certainty <= least) {
            let Some((template, need)) = self.halves.all.get(usize::from(part.entry.half)).copied() else {
                continue;
            };
            let Some(parts) = parts.get_mut(&template) else { continue };
            match part.entry.hold {
                Hold::Own => parts.own.entry(part.node).or_default().push((need, part)),
                Hold::Shared | Hold::Free => parts.add_shared(need, part),
            }
        }
        parts
    }

    fn meet_template(&mut self, template: u32, said: &Template, parts: &Parts, meeting: &mut Meeting) {
        if said.certainty > meeting.least {
            return;
        }
        let mut requesters: Vec<Option<NodeId>> = vec![None];
        if !said.alone.is_empty() {
            let mut own: Vec<NodeId> = parts.own.keys().copied().collect();
            own.sort_unstable();
            requesters.extend(own.into_iter().map(Some));
        }
        for requester in requesters {
            let usable = self.usable(said, parts, requester);
            if usable.iter().any(Vec::is_empty) {
                continue;
            }
            if matches!(said.gives, Gift::Target(Target::JoinedClusterRole | Target::JoinedRole)) {
                self.join(template, said, &usable, meeting);
            } else if is_by_name(said) {
                self.bind_by_name(template, said, &usable, meeting);
            } else {
                self.meet_alone(template, said, &usable, requester.is_some(), meeting);
            }
            if self.is_reached(Fact::Everything(Scope::Cluster)) {
                return;
            }
        }
    }

    /// By need, the parts that count for one request of a requester, or of whomever one likes.
    fn usable(&self, said: &Template, parts: &Parts, requester: Option<NodeId>) -> Vec<Vec<Part>> {
        let own: Vec<(u8, Part)> = requester.map_or_else(Vec::new, |requester| {
            let (identity, acting) = match self.made.nodes.get_index(requester as usize) {
                Some((_, Node::Fact(Fact::Identity(identity)))) => (Some(*identity), false),
                Some((_, Node::Acting(identity))) => (Some(*identity), true),
                _ => (None, false),
            };
            let groups = identity.into_iter().flat_map(|identity| self.groups_of(identity, acting));
            let holders = [requester].into_iter().chain(groups.filter_map(|group| self.find(group)));
            holders.filter_map(|holder| parts.own.get(&holder)).flatten().copied().collect()
        });
        (0u8..)
            .zip(&said.when)
            .map(|(need, _)| {
                let alone = said.alone.contains(&usize::from(need));
                let shared = parts.shared.get(&need).into_iter().flatten();
                let shared = shared.filter(|part| !alone || part.entry.hold == Hold::Free);
                let mine = own.iter().filter(|(of, _)| *of == need).map(|(_, part)| part);
                mine.chain(shared).copied().collect()
            })
            .collect()
    }

    fn meet_alone(
        &mut self,
        template: u32,
        said: &Template,
        usable: &[Vec<Part>],
        is_somebody: bool,
        meeting: &mut Meeting,
    ) {
        let replaces = matches!(said.gives, Gift::Target(Target::ReplacedClusterRole | Target::ReplacedRole));
        if replaces && !is_somebody {
            // A role that is gained may be the very one that is deleted.
            return;
        }
        for place in candidates(&said.when, usable) {
            for (role, gives, certainty) in self.gifts_of_all(template, place, &meeting.reached) {
                if certainty > meeting.least || self.is_known(gives) {
                    continue;
                }
                let replaced = role.filter(|_| replaces).and_then(|role| self.role_key(role));
                let inputs: Option<Vec<Input>> = (0usize..)
                    .zip(said.when.iter().zip(usable))
                    .map(|(index, (need, parts))| {
                        let role = replaced.filter(|_| said.alone.contains(&index));
                        self.pick(need, parts, place, role)
                    })
                    .collect();
                let Some(mut inputs) = inputs else { continue };
                inputs.extend(role.map(|node| Input { node, via: None }));
                self.joint(template, inputs, gives, meeting);
            }
        }
    }

    /// Makes the edge to what several inputs give.
    pub fn joint(&mut self, template: u32, mut inputs: Vec<Input>, gives: NodeId, meeting: &mut Meeting) {
        let mut seen: Vec<Input> = Vec::with_capacity(inputs.len());
        inputs.retain(|input| {
            let is_new = !seen.contains(input);
            seen.push(*input);
            is_new
        });
        let index = u32::try_from(self.made.joints.len()).unwrap_or(u32::MAX);
        self.made.joints.push(Joint { template, inputs: inputs.into() });
        self.edge_of(meeting.at, gives, Via::Joint(index), meeting.least);
        self.expand_new();
        self.walk(gives, meeting.least, &mut meeting.reached);
        meeting.given.push(gives);
    }

    /// Whether a gift is reached already, itself or by what is wider.
    pub fn is_known(&self, gives: NodeId) -> bool {
        let scope = match self.made.nodes.get_index(gives as usize) {
            Some((_, Node::Fact(fact))) => crate::Power::of(fact).map(|(_, scope)| scope),
            Some((_, Node::Gained { scope, .. } | Node::Passed { scope, .. })) => Some(*scope),
            _ => None,
        };
        self.was_reached(gives) || scope.is_some_and(|scope| self.is_reached(Fact::Everything(scope)))
    }

    /// The surest part that meets a need at a place. Of a role that is replaced, and of what may come from it, none.
    fn pick(&self, need: &Need, parts: &[Part], place: Spot, replaced: Option<RoleKey>) -> Option<Input> {
        let covering = parts.iter().filter(|part| covers(need, &part.entry, place));
        let kept = covering.filter(|part| {
            replaced.is_none_or(|role| {
                part.entry.hold == Hold::Own && !part.entry.via.is_some_and(|via| self.is_from(via, role))
            })
        });
        let part = kept.min_by_key(|part| part.entry.certainty)?;
        Some(Input { node: part.node, via: part.entry.via })
    }

    fn role_key(&self, role: NodeId) -> Option<RoleKey> {
        match self.made.nodes.get_index(role as usize) {
            Some((_, Node::Fact(Fact::Role { namespace, name, .. }))) => Some((*namespace, *name)),
            _ => None,
        }
    }

    /// Whether a right comes from a role.
    fn is_from(&self, via: Via, role: RoleKey) -> bool {
        let Via::Admitted { binding, .. } = via else { return false };
        self.binding(binding)
            .is_some_and(|b| (if b.cluster_role { None } else { b.namespace }, b.role) == role)
    }

    /// What a template gives whose needs are all met: gifts, or roles that must be held and what widening them gives.
    fn gifts_of_all(&mut self, template: u32, (scope, name): Spot, reached: &Reached) -> Gifts {
        let Some(said) = self.template(template) else { return Vec::new() };
        match said.gives {
            Gift::Target(
                target @ (Target::HeldClusterRole
                | Target::HeldRole
                | Target::ReplacedClusterRole
                | Target::ReplacedRole
                | Target::NewClusterRole
                | Target::NewRole),
            ) => self.held_roles(target, (scope, name), reached),
            _ => {
                let gifts = self.gifts(template, scope, name).into_iter();
                gifts.map(|(node, certainty)| (None, node, certainty)).collect()
            }
        }
    }

    /// Roles that are held, as inputs, and what writing any rule into them gives: everything where they are bound.
    pub fn held_roles(&mut self, target: Target, (scope, name): Spot, reached: &Reached) -> Gifts {
        let exists = |namespace: Option<Symbol>, role: Symbol| self.find_role((namespace, role)).is_some();
        // A ClusterRole that is changed can be labelled so that others aggregate it.
        let changed = match name {
            Some(name) => exists(None, name),
            None => true,
        };
        let here = |namespace: Option<Symbol>| match (namespace, scope) {
            (None, _) => false,
            (Some(_), Scope::Cluster) => true,
            (Some(namespace), Scope::Namespace(wanted)) => namespace == wanted,
        };
        let named = |role: Symbol| name.is_none_or(|name| name == role);
        let fits = |(namespace, role, ..): &&(Option<Symbol>, Symbol, Scope, NodeId)| {
            let (namespace, role) = (*namespace, *role);
            match target {
                Target::HeldRole | Target::ReplacedRole => {
                    here(namespace) && named(role) && exists(namespace, role)
                }
                Target::ReplacedClusterRole => namespace.is_none() && named(role) && exists(None, role),
                Target::NewRole => here(namespace) && named(role) && !exists(namespace, role),
                Target::HeldClusterRole => {
                    let same = named(role) && exists(None, role);
                    namespace.is_none() && changed && (same || self.is_aggregating(role))
                }
                _ => {
                    let free = name.is_none_or(|name| !exists(None, name));
                    let same = named(role) && !exists(None, role);
                    namespace.is_none() && free && (same || self.is_aggregating(role))
                }
            }
        };
        let mut held: Vec<(Scope, NodeId)> =
            reached.roles.iter().filter(fits).map(|(_, _, scope, node)| (*scope, *node)).collect();
        // The whole cluster first: it makes the rest needless.
        held.sort_unstable();
        held.into_iter()
            .map(|(scope, role)| (Some(role), self.fact(Fact::Everything(scope)), Certainty::Proven))
            .collect()
    }
}

/// Whether a half meets a need at a place.
pub fn covers(need: &Need, entry: &Entry, (scope, name): Spot) -> bool {
    let (at, for_name) = limits(need, entry);
    (at == scope || at == Scope::Cluster) && (for_name.is_none() || for_name == name)
}

/// The scope and the name that a half limits its template to.
fn limits(need: &Need, entry: &Entry) -> Spot {
    match need {
        Need::Right { place, named, .. } => (
            if *place == Place::Here { entry.scope } else { Scope::Cluster },
            entry.name.filter(|_| *named == Named::Target),
        ),
        Need::Power(_) => (entry.scope, None),
        Need::Fact(_) | Need::AnyImpersonation => (Scope::Cluster, None),
    }
}

/// The widest scopes and names for which every need is met.
fn candidates(when: &[Need], usable: &[Vec<Part>]) -> Vec<Spot> {
    let mut places: FxHashSet<Spot> = FxHashSet::from_iter([(Scope::Cluster, None)]);
    for (need, parts) in when.iter().zip(usable) {
        let all: FxHashSet<Spot> = parts.iter().map(|part| limits(need, &part.entry)).collect();
        if all.contains(&(Scope::Cluster, None)) {
            continue;
        }
        let mut by_scope: FxHashMap<Scope, Vec<Option<Symbol>>> = FxHashMap::default();
        for (scope, name) in widest(&all) {
            by_scope.entry(scope).or_default().push(name);
        }
        let mut next = FxHashSet::default();
        for (scope, name) in places {
            let mut meet = |at: Scope, names: &[Option<Symbol>]| {
                let names = names.iter().filter(|other| name.is_none() || other.is_none() || **other == name);
                next.extend(names.map(|other| (at, name.or(*other))));
            };
            match scope {
                Scope::Cluster => by_scope.iter().for_each(|(at, names)| meet(*at, names)),
                Scope::Namespace(_) => {
                    for at in [scope, Scope::Cluster] {
                        meet(scope, by_scope.get(&at).map_or(&[], Vec::as_slice));
                    }
                }
            }
        }
        places = next;
    }
    let mut places = widest(&places);
    places.sort_unstable();
    places
}

/// Those that no other covers.
fn widest(all: &FxHashSet<Spot>) -> Vec<Spot> {
    let covered = |(scope, name): &Spot| {
        let wider = [(Scope::Cluster, None), (Scope::Cluster, *name), (*scope, None)];
        wider.iter().any(|wide| wide != &(*scope, *name) && all.contains(wide))
    };
    all.iter().filter(|place| !covered(place)).copied().collect()
}
