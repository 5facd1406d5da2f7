//! The file's tensors by their modules, of residual networks: a stem, blocks of a branch and a shortcut, a head.
//!
//! A file of safetensors has no order but that of names, so that names must say where a module belongs. Two ways to name them are
//! understood, with any prefix:
//! * `conv1`, `bn1`; `layerS.B.convK`, `layerS.B.bnK`, `layerS.B.downsample.I` or `shortcut.I`; `fc` or `linear`
//!   (torchvision, and the many networks that follow it);
//! * `input_net.I`; `blocks.B.net.I`, `blocks.B.downsample`; `output_net.I` (Lippe's deep learning tutorials).

use std::collections::BTreeMap;
use std::fmt;

use super::error::printable;
use super::file::TensorEntry;
use super::modules::{Module, Role};
use super::needs::{BlockPart, Need};

/// Names that are understood.
const NAMES: &str = "conv1, bn1, layer1.0.conv1, layer1.0.bn1, layer1.0.downsample.0 or shortcut.0, fc or linear; or input_net.0, blocks.0.net.0, blocks.0.downsample, output_net.2";

/// Where a module belongs. The order is that of the network but for shortcuts, which may come before their branches there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Site {
    Stem(Vec<u64>),
    Block {
        block: Vec<u64>,
        is_shortcut: bool,
        order: Vec<u64>,
    },
    Head(Vec<u64>),
}

fn number(text: &str) -> Option<u64> {
    text.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| text.parse().ok())?
}

/// Numbers alone, such as `0` or `0.1`; of nothing none.
fn numbers(parts: &[&str]) -> Option<Vec<u64>> {
    parts.iter().map(|part| number(part)).collect()
}

/// The number behind a name, such as that of `conv1`.
fn numbered(part: &str, name: &str) -> Option<u64> {
    number(part.strip_prefix(name)?)
}

/// What is a module's place among convolutions and their normalisation, as `conv2` and `bn2` have it.
fn in_turn(part: &str) -> Option<Vec<u64>> {
    let convolution = numbered(part, "conv").map(|number| vec![number, 0]);
    convolution.or_else(|| numbered(part, "bn").map(|number| vec![number, 1]))
}

impl Site {
    /// Of a module's name.
    fn of(module: &str) -> Option<Self> {
        let parts: Vec<&str> = module.split('.').collect();
        (0..parts.len()).find_map(|start| Self::of_parts(&parts[start..]))
    }

    /// Of a name without a prefix.
    fn of_parts(parts: &[&str]) -> Option<Self> {
        let (&first, rest) = parts.split_first()?;
        let group = match first {
            "blocks" => Some(0),
            _ => numbered(first, "layer"),
        };
        if let Some(group) = group {
            let (&block, inside) = rest.split_first()?;
            let block = vec![group, number(block)?];
            let (&role, after) = inside.split_first()?;
            let (is_shortcut, order) = match role {
                "downsample" | "shortcut" => (true, numbers(after)?),
                "net" => (false, numbers(after)?),
                _ => (false, in_turn(role).filter(|_| after.is_empty())?),
            };
            return Some(Self::Block {
                block,
                is_shortcut,
                order,
            });
        }
        match first {
            "input_net" => numbers(rest).map(Self::Stem),
            "output_net" | "fc" | "linear" => numbers(rest).map(Self::Head),
            _ => in_turn(first).filter(|_| rest.is_empty()).map(Self::Stem),
        }
    }
}

/// Modules in the order of `needs`.
///
/// # Errors
/// A tensor whose name is not understood, or blocks that are not those of the network, in words.
pub(super) fn modules(tensors: &[TensorEntry], needs: &[Need]) -> Result<Vec<Module>, String> {
    let mut sites: Vec<(Site, Module)> = Vec::new();
    for (index, tensor) in tensors.iter().enumerate() {
        let place = tensor
            .name
            .rsplit_once('.')
            .and_then(|(module, own)| Some((Site::of(module)?, module, Role::of(own)?)));
        let (site, module, role) = place.ok_or_else(|| {
            format!(
                "{} is not the name of a tensor of a residual network, such as {NAMES}",
                printable(&tensor.name)
            )
        })?;
        match sites.iter_mut().find(|(_, own)| own.name == module) {
            Some((_, own)) => own.add(role, index),
            None => {
                let mut own = Module::new(module);
                own.add(role, index);
                sites.push((site, own));
            }
        }
    }
    sites.sort_by(|(one, first), (other, second)| {
        one.cmp(other).then_with(|| first.name.cmp(&second.name))
    });
    if let Some(pair) = sites.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Err(format!(
            "{} and {} have one place",
            printable(&pair[0].1.name),
            printable(&pair[1].1.name)
        ));
    }
    in_order_of(needs, sites)
}

/// A part of a network: what comes before its blocks, the branch or shortcut of one of them, or what follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Stem,
    Block { index: usize, is_shortcut: bool },
    Head,
}

impl Part {
    fn of(need: &Need) -> Self {
        match need.block {
            Some(BlockPart { index, is_shortcut }) => Self::Block { index, is_shortcut },
            None if need.is_after_blocks => Self::Head,
            None => Self::Stem,
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stem => write!(f, "the stem"),
            Self::Block { index, is_shortcut } => {
                let part = if *is_shortcut { "shortcut" } else { "branch" };
                write!(f, "the {part} of block {}", index + 1)
            }
            Self::Head => write!(f, "what follows the blocks"),
        }
    }
}

/// Takes the parts in the network's order. A part of another length is refused here: everything after it would be compared
/// with what it is not.
fn in_order_of(needs: &[Need], sites: Vec<(Site, Module)>) -> Result<Vec<Module>, String> {
    let mut blocks: Vec<Vec<u64>> = Vec::new();
    let mut parts: BTreeMap<Part, Vec<Module>> = BTreeMap::new();
    for (site, module) in sites {
        let part = match site {
            Site::Stem(_) => Part::Stem,
            Site::Head(_) => Part::Head,
            Site::Block {
                block, is_shortcut, ..
            } => {
                if blocks.last() != Some(&block) {
                    blocks.push(block);
                }
                let index = blocks.len() - 1;
                Part::Block { index, is_shortcut }
            }
        };
        parts.entry(part).or_default().push(module);
    }
    let indices = needs.iter().filter_map(|need| Some(need.block?.index + 1));
    let wanted = indices.max().unwrap_or(0);
    if blocks.len() != wanted {
        return Err(format!(
            "it has {} blocks, and the network {wanted} parallel layers with weights",
            blocks.len()
        ));
    }
    let mut ordered = Vec::new();
    for own in needs.chunk_by(|one, other| Part::of(one) == Part::of(other)) {
        let part = Part::of(&own[0]);
        let modules = parts.remove(&part).unwrap_or_default();
        if modules.len() != own.len() {
            return Err(differs(part, &modules, own));
        }
        ordered.extend(modules);
    }
    match parts.pop_first() {
        Some((part, modules)) => Err(differs(part, &modules, &[])),
        None => Ok(ordered),
    }
}

fn differs(part: Part, modules: &[Module], own: &[Need]) -> String {
    let names: Vec<String> = modules.iter().map(|own| printable(&own.name)).collect();
    let layers: Vec<&str> = own.iter().map(|need| need.name.as_str()).collect();
    format!(
        "{part} has {}, the network's {}",
        listed(&names),
        listed(&layers)
    )
}

fn listed<S: AsRef<str>>(names: &[S]) -> String {
    match names {
        [] => "none with tensors".to_owned(),
        names => names
            .iter()
            .map(AsRef::as_ref)
            .collect::<Vec<_>>()
            .join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_their_places() {
        let block = |block: [u64; 2], is_shortcut, order: &[u64]| {
            Some(Site::Block {
                block: block.to_vec(),
                is_shortcut,
                order: order.to_vec(),
            })
        };
        for (name, site) in [
            ("conv1", Some(Site::Stem(vec![1, 0]))),
            ("module.bn1", Some(Site::Stem(vec![1, 1]))),
            ("layer3.10.conv2", block([3, 10], false, &[2, 0])),
            ("model.layer3.10.bn2", block([3, 10], false, &[2, 1])),
            ("layer2.0.downsample.1", block([2, 0], true, &[1])),
            ("layer2.0.shortcut", block([2, 0], true, &[])),
            ("fc", Some(Site::Head(vec![]))),
            ("linear", Some(Site::Head(vec![]))),
            ("_orig_mod.input_net.1", Some(Site::Stem(vec![1]))),
            ("blocks.4.net.3", block([0, 4], false, &[3])),
            ("blocks.4.downsample", block([0, 4], true, &[])),
            ("output_net.2", Some(Site::Head(vec![2]))),
            ("layer2.0.attention", None),
            ("layer2.conv1.x", None),
            ("0", None),
            ("", None),
        ] {
            assert_eq!(Site::of(name), site, "{name}");
        }
        // numbers, not their digits
        assert!(Site::of("layer1.9.conv1") < Site::of("layer1.10.conv1"));
    }
}
