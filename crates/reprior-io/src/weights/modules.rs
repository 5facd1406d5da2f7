//! The file's tensors by the module of `nn.Sequential` that they are of.

use super::error::{dimensions, printable};
use super::file::TensorEntry;

/// Most tensors in a message.
const MOST_IN_WORDS: usize = 100;

/// What a tensor is to its module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    Weight,
    Bias,
    RunningMean,
    RunningVariance,
    /// Batches that statistics were taken over: of no use any more.
    Batches,
}

impl Role {
    const ALL: [(&'static str, Self); 5] = [
        ("weight", Self::Weight),
        ("bias", Self::Bias),
        ("running_mean", Self::RunningMean),
        ("running_var", Self::RunningVariance),
        ("num_batches_tracked", Self::Batches),
    ];

    pub fn of(name: &str) -> Option<Self> {
        let named = Self::ALL.iter().find(|(own, _)| *own == name)?;
        Some(named.1)
    }

    /// As in the file.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].0
    }
}

/// A module with tensors.
#[derive(Debug)]
pub(super) struct Module {
    /// Its key without the tensor's own name, such as `net.0`.
    pub name: String,
    /// Number of the tensor in the file for each [`Role`].
    tensors: [Option<usize>; Role::ALL.len()],
}

impl Module {
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            tensors: Default::default(),
        }
    }

    /// Tensor `index` of the file is its own, of this role.
    pub fn add(&mut self, role: Role, index: usize) {
        self.tensors[role as usize] = Some(index);
    }

    /// Number of the tensor of this role among those of the file.
    pub fn tensor(&self, role: Role) -> Option<usize> {
        self.tensors[role as usize]
    }
}

/// A tensor's name in parts.
struct ModulePlace<'a> {
    /// What comes before the numbers.
    prefix: &'a str,
    /// Of the module, and of those around it where sequences are nested.
    numbers: Vec<u64>,
    module: &'a str,
    role: Role,
}

impl<'a> ModulePlace<'a> {
    fn of(name: &'a str) -> Option<Self> {
        let (module, own) = name.rsplit_once('.')?;
        let role = Role::of(own)?;
        let mut numbers = Vec::new();
        let mut prefix = module;
        while !prefix.is_empty() {
            let (before, last) = prefix.rsplit_once('.').unwrap_or(("", prefix));
            if !last.bytes().all(|byte| byte.is_ascii_digit()) {
                break;
            }
            let Ok(number) = last.parse() else { break };
            numbers.push(number);
            prefix = before;
        }
        numbers.reverse();
        (!numbers.is_empty()).then_some(Self {
            prefix,
            numbers,
            module,
            role,
        })
    }
}

/// Modules in order.
///
/// # Errors
/// A tensor that is not of a sequence of modules, in words.
pub(super) fn modules(tensors: &[TensorEntry]) -> Result<Vec<Module>, String> {
    let mut places = Vec::with_capacity(tensors.len());
    for (index, tensor) in tensors.iter().enumerate() {
        let place = ModulePlace::of(&tensor.name).ok_or_else(|| {
            format!(
                "{} is not the name of a tensor of nn.Sequential, NUMBER.weight, NUMBER.bias, NUMBER.running_mean or NUMBER.running_var",
                printable(&tensor.name)
            )
        })?;
        places.push((place, index));
    }
    places.sort_by(|(one, _), (other, _)| {
        let by_number = one.numbers.cmp(&other.numbers);
        by_number.then_with(|| one.module.cmp(other.module))
    });
    let mut modules: Vec<Module> = Vec::new();
    for (place, index) in &places {
        let first = &places[0].0;
        if place.prefix != first.prefix {
            return Err(format!(
                "{} and {} belong to two sequences, whose order the file does not say; save one nn.Sequential of all layers",
                printable(first.module),
                printable(place.module)
            ));
        }
        if modules
            .last()
            .is_none_or(|module| module.name != place.module)
        {
            modules.push(Module::new(place.module));
        }
        if let Some(module) = modules.last_mut() {
            module.add(place.role, *index);
        }
    }
    Ok(modules)
}

/// Names and shapes of all tensors, in the order of their modules; those without a place come last.
pub(super) fn in_order(tensors: &[TensorEntry]) -> String {
    let mut entries: Vec<_> = tensors.iter().collect();
    entries.sort_by_cached_key(|tensor| {
        let place = ModulePlace::of(&tensor.name).map(|place| (place.numbers, place.role));
        (place.is_none(), place, tensor.name.clone())
    });
    if entries.is_empty() {
        return "no tensors".to_owned();
    }
    let shown = entries.iter().take(MOST_IN_WORDS);
    let shown = shown.map(|tensor| {
        let shape = dimensions(&tensor.shape);
        format!("{} {shape}", printable(&tensor.name))
    });
    let mut text = shown.collect::<Vec<_>>().join(", ");
    if entries.len() > MOST_IN_WORDS {
        text += &format!(", and {} more", entries.len() - MOST_IN_WORDS);
    }
    text
}
