//! A library's source as modules of items, followed from `lib.rs` through its `mod` lines; tests are left out.
#![expect(clippy::disallowed_methods, reason = "chores read the source tree itself")]

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use syn::{Attribute, Ident, Item, UseTree};

/// Names on the way from the crate's root to a module.
pub(super) type Place = Vec<String>;

/// All modules of a library.
#[derive(Default)]
pub(super) struct Library {
    pub(super) modules: BTreeMap<Place, Vec<Item>>,
}

/// One name of a `use` declaration.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Used {
    pub(super) path: Vec<String>,
    pub(super) name: String,
}

impl Library {
    /// Reads the library whose `lib.rs` lies in `folder`.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let mut library = Self::default();
        library.file(&folder.join("lib.rs"), folder, Place::new())?;
        Ok(library)
    }

    /// A library of one file, for tests.
    #[cfg(test)]
    pub(super) fn of(text: &str) -> Result<Self> {
        let mut library = Self::default();
        library.module(syn::parse_file(text)?.items, Path::new("/nowhere"), Place::new())?;
        Ok(library)
    }

    fn file(&mut self, file: &Path, children: &Path, place: Place) -> Result<()> {
        let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
        let parsed = syn::parse_file(&text).with_context(|| file.display().to_string())?;
        self.module(parsed.items, children, place)
    }

    fn module(&mut self, items: Vec<Item>, children: &Path, place: Place) -> Result<()> {
        let mut kept = Vec::new();
        for mut item in items {
            if attributes(&mut item).is_some_and(|given| is_for_tests(given)) {
                continue;
            }
            if let Item::Mod(module) = &mut item {
                let name = module.ident.to_string();
                let inner: Place = place.iter().cloned().chain([name.clone()]).collect();
                let below = children.join(&name);
                match module.content.take() {
                    Some((_, items)) => self.module(items, &below, inner)?,
                    None => self.file(&children.join(format!("{name}.rs")), &below, inner)?,
                }
            }
            kept.push(item);
        }
        self.modules.insert(place, kept);
        Ok(())
    }

    /// Where `path`, written in the module `from`, leads within this library; nothing where it leads out of it.
    pub(super) fn resolve(&self, from: &Place, path: &[String]) -> Option<Place> {
        let (first, rest) = path.split_first()?;
        let place: Place = match first.as_str() {
            "crate" => rest.to_vec(),
            "self" => from.iter().chain(rest).cloned().collect(),
            "super" => from.split_last()?.1.iter().chain(rest).cloned().collect(),
            _ => from.iter().chain(path).cloned().collect(),
        };
        let (_, module) = place.split_last()?;
        self.modules.contains_key(module).then_some(place)
    }

    /// The item at `place`.
    pub(super) fn item(&self, place: &Place) -> Option<&Item> {
        let (name, module) = place.split_last()?;
        self.modules.get(module)?.iter().find(|item| ident(item).is_some_and(|it| it == name))
    }

    /// Where the type `name`, as the module `from` says it, is defined in this library.
    pub(super) fn type_seen_from(&self, from: &Place, name: &str) -> Option<Place> {
        let here: Place = from.iter().cloned().chain([name.to_owned()]).collect();
        if self.item(&here).is_some_and(is_type) {
            return Some(here);
        }
        let trees = self.modules.get(from)?.iter().filter_map(|item| match item {
            Item::Use(declared) => Some(&declared.tree),
            _ => None,
        });
        let mut named = trees.flat_map(|tree| flat(tree).unwrap_or_default());
        let found = named.find(|used| used.name == name)?;
        let place = self.resolve(from, &found.path).filter(|place| *place != here)?;
        // It may be a name that another module passes on.
        let (name, module) = place.split_last()?;
        self.type_seen_from(&module.to_vec(), name)
    }
}

/// The name of an item that has one.
pub(super) fn ident(item: &Item) -> Option<&Ident> {
    match item {
        Item::Const(it) => Some(&it.ident),
        Item::Enum(it) => Some(&it.ident),
        Item::Fn(it) => Some(&it.sig.ident),
        Item::Mod(it) => Some(&it.ident),
        Item::Static(it) => Some(&it.ident),
        Item::Struct(it) => Some(&it.ident),
        Item::Trait(it) => Some(&it.ident),
        Item::Type(it) => Some(&it.ident),
        Item::Union(it) => Some(&it.ident),
        _ => None,
    }
}

/// Whether an item is a type or a trait.
pub(super) fn is_type(item: &Item) -> bool {
    use Item::{Enum, Struct, Trait, Type, Union};
    matches!(item, Struct(_) | Enum(_) | Trait(_) | Type(_) | Union(_))
}

/// The attributes of an item.
pub(super) fn attributes(item: &mut Item) -> Option<&mut Vec<Attribute>> {
    Some(match item {
        Item::Const(it) => &mut it.attrs,
        Item::Enum(it) => &mut it.attrs,
        Item::Fn(it) => &mut it.attrs,
        Item::Impl(it) => &mut it.attrs,
        Item::Mod(it) => &mut it.attrs,
        Item::Static(it) => &mut it.attrs,
        Item::Struct(it) => &mut it.attrs,
        Item::Trait(it) => &mut it.attrs,
        Item::Type(it) => &mut it.attrs,
        Item::Union(it) => &mut it.attrs,
        Item::Use(it) => &mut it.attrs,
        _ => return None,
    })
}

/// Whether these attributes leave the item to tests.
pub(super) fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<Ident>().is_ok_and(|only| only == "test" || only == "doctest")
    })
}

/// The names of a `use` declaration, each with its path.
///
/// # Errors
///
/// A glob, which hides what it names.
pub(super) fn flat(tree: &UseTree) -> Result<Vec<Used>> {
    fn walk(tree: &UseTree, path: &mut Vec<String>, found: &mut Vec<Used>) -> Result<()> {
        match tree {
            UseTree::Path(step) => {
                path.push(step.ident.to_string());
                walk(&step.tree, path, found)?;
                path.pop();
            }
            UseTree::Name(last) if last.ident == "self" => {
                let name = path.last().cloned().context("use self")?;
                found.push(Used { path: path.clone(), name });
            }
            UseTree::Name(last) => {
                let name = last.ident.to_string();
                let path = path.iter().cloned().chain([name.clone()]).collect();
                found.push(Used { path, name });
            }
            UseTree::Rename(last) => {
                let path = path.iter().cloned().chain([last.ident.to_string()]).collect();
                found.push(Used { path, name: last.rename.to_string() });
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    walk(tree, path, found)?;
                }
            }
            UseTree::Glob(_) => bail!("a glob in a use declaration"),
        }
        Ok(())
    }
    let mut found = Vec::new();
    walk(tree, &mut Vec::new(), &mut found)?;
    Ok(found)
}
