//! The nodes of a world: whether they run, and what their clocks show.

use std::sync::Arc;

use crate::chance::mix;
use crate::clock::Clock;
use crate::executor::Alarm;

/// Numbers the nodes of a world; the first is 0.
pub(crate) type NodeId = usize;

#[derive(Debug)]
pub(crate) struct Nodes {
    nodes: Vec<Node>,
    /// Decides all names; a draw as every other.
    salt: u64,
}

#[derive(Debug)]
struct Node {
    name: Arc<str>,
    state: Running,
    clock: Clock,
    names_drawn: u64,
}

#[derive(Debug)]
enum Running {
    Yes,
    /// These would run if it went on.
    Paused(Vec<Arc<Alarm>>),
    Dead,
}

impl Nodes {
    pub(crate) const fn new(salt: u64) -> Self {
        Self {
            nodes: Vec::new(),
            salt,
        }
    }

    pub(crate) fn add(&mut self, name: Arc<str>) -> NodeId {
        self.nodes.push(Node {
            name,
            state: Running::Yes,
            clock: Clock::default(),
            names_drawn: 0,
        });
        self.nodes.len() - 1
    }

    /// The nodes of a name that are not dead.
    pub(crate) fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = NodeId> + 'a {
        let living = |node: &Node| !matches!(node.state, Running::Dead);
        let nodes = self.nodes.iter().enumerate();
        nodes
            .filter(move |(_, node)| &*node.name == name && living(node))
            .map(|(id, _)| id)
    }

    pub(crate) fn is_dead(&self, node: NodeId) -> bool {
        let node = self.nodes.get(node);
        node.is_some_and(|node| matches!(node.state, Running::Dead))
    }

    pub(crate) fn clock(&self, node: NodeId) -> Option<&Clock> {
        self.nodes.get(node).map(|node| &node.clock)
    }

    pub(crate) fn clock_mut(&mut self, node: NodeId) -> Option<&mut Clock> {
        self.nodes.get_mut(node).map(|node| &mut node.clock)
    }

    /// The node runs nothing any more; answers with what it would have run.
    pub(crate) fn kill(&mut self, node: NodeId) -> Vec<Arc<Alarm>> {
        self.change(node, Running::Dead)
    }

    /// The node's tasks stand still.
    pub(crate) fn pause(&mut self, node: NodeId) {
        if let Some(node) = self.nodes.get_mut(node)
            && matches!(node.state, Running::Yes)
        {
            node.state = Running::Paused(Vec::new());
        }
    }

    /// The node goes on; answers with what it has to run.
    pub(crate) fn resume(&mut self, node: NodeId) -> Vec<Arc<Alarm>> {
        if self.is_dead(node) {
            return Vec::new();
        }
        self.change(node, Running::Yes)
    }

    fn change(&mut self, node: NodeId, state: Running) -> Vec<Arc<Alarm>> {
        let Some(node) = self.nodes.get_mut(node) else {
            return Vec::new();
        };
        match std::mem::replace(&mut node.state, state) {
            Running::Paused(parked) => parked,
            Running::Yes | Running::Dead => Vec::new(),
        }
    }

    /// Keeps what would run until its node goes on; gives it back if the node runs.
    pub(crate) fn park(&mut self, node: NodeId, alarm: Arc<Alarm>) -> Option<Arc<Alarm>> {
        match self.nodes.get_mut(node).map(|node| &mut node.state) {
            Some(Running::Paused(parked)) => {
                parked.push(alarm);
                None
            }
            _ => Some(alarm),
        }
    }

    /// 64 bits that nothing else in this world is likely to be named by, whatever was drawn before:
    /// names need not be shrunk, but they have to stay apart.
    pub(crate) fn draw_name(&mut self, node: NodeId) -> u64 {
        let salt = self.salt;
        let Some(known) = self.nodes.get_mut(node) else {
            return mix(salt);
        };
        known.names_drawn += 1;
        let node = u64::try_from(node).unwrap_or(u64::MAX);
        mix(salt ^ mix((node << 40) ^ known.names_drawn))
    }
}
