//! What a library shows: items that can be named from outside, with their methods and traits, without bodies.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, ensure};
use quote::{ToTokens as _, quote};
use syn::{
    Attribute, Field, Fields, FieldsNamed, FieldsUnnamed, FnArg, ImplItem, Item, ItemImpl, Pat,
    Signature, TraitItem, Type, Visibility, parse_quote,
};

use super::source::{Library, Place, attributes, flat, ident, is_for_tests, is_type};

const OPENING: &str = "// What this library shows, read from its source by `cargo xtask api`.\n";
/// Stands for fields that cannot be named outside, until the text is made.
const HIDDEN: &str = "__hidden__";

/// An item that can be named from outside.
struct Export {
    /// The public module in which it has this name.
    module: Place,
    name: String,
    /// Where it is defined; nothing for what is another library's.
    defined: Option<Place>,
    item: Item,
}

/// The listing of `library`.
///
/// # Errors
///
/// A public path that leads nowhere, or a signature that shows a type which nobody outside can name.
pub(super) fn text(library: &Library) -> Result<String> {
    let mut exports = Vec::new();
    collect(library, &ROOT, &[], &mut exports)?;
    exports.sort_by(|a, b| (&a.module, &a.name).cmp(&(&b.module, &b.name)));
    let types: BTreeSet<&Place> = exports
        .iter()
        .filter(|export| is_type(&export.item))
        .filter_map(|export| export.defined.as_ref())
        .collect();
    let mut implemented = implementations(library, &types);

    let mut modules: BTreeMap<&Place, Vec<Vec<Item>>> = BTreeMap::new();
    for export in &exports {
        let mut group = vec![bare(export.item.clone())];
        let own = export.defined.as_ref().and_then(|place| implemented.remove(&Some(place)));
        group.extend(own.unwrap_or_default());
        modules.entry(&export.module).or_default().push(group);
    }
    if let Some(foreign) = implemented.remove(&None) {
        modules.entry(&ROOT).or_default().push(foreign);
    }

    let mut text = OPENING.to_owned();
    for (module, groups) in modules {
        if !module.is_empty() {
            text.push_str("\n// ");
            text.push_str(&module.join("::"));
            text.push('\n');
        }
        for items in groups {
            text.push('\n');
            text.push_str(&printed(items));
        }
    }
    unnameable(library, &exports, &text)?;
    Ok(text)
}

static ROOT: Place = Place::new();

/// Adds what `module` makes public; `condition` is what it is there under.
fn collect(
    library: &Library,
    module: &Place,
    condition: &[Attribute],
    exports: &mut Vec<Export>,
) -> Result<()> {
    let items = library.modules.get(module).context("a module without a file")?;
    for item in items {
        match item {
            Item::Use(declared) if is_public(&declared.vis) => {
                for used in flat(&declared.tree)? {
                    let renamed = used.path.last() != Some(&used.name);
                    ensure!(!renamed, "{} is shown by another name than its own", used.name);
                    let defined = library.resolve(module, &used.path);
                    let found = defined.as_ref().map(|place| {
                        library.item(place).with_context(|| format!("no {}", place.join("::")))
                    });
                    let mut item = match found.transpose()? {
                        Some(found) => found.clone(),
                        None => item.clone(),
                    };
                    let given = if defined.is_some() { declared.attrs.as_slice() } else { &[] };
                    give(&mut item, given.iter().chain(condition));
                    exports.push(Export { module: module.clone(), name: used.name, defined, item });
                }
            }
            Item::Mod(inner) if is_public(&inner.vis) => {
                let place = module.iter().cloned().chain([inner.ident.to_string()]).collect();
                let below: Vec<_> = condition.iter().chain(&inner.attrs).cloned().collect();
                collect(library, &place, &below, exports)?;
            }
            _ => {
                let Some(name) = ident(item).filter(|_| visibility(item).is_some_and(is_public))
                else {
                    continue;
                };
                let name = name.to_string();
                let defined = Some(module.iter().cloned().chain([name.clone()]).collect());
                let mut item = item.clone();
                give(&mut item, condition.iter());
                exports.push(Export { module: module.clone(), name, defined, item });
            }
        }
    }
    Ok(())
}

/// Adds the conditions among `more` to the item's own.
fn give<'a>(item: &mut Item, more: impl Iterator<Item = &'a Attribute>) {
    if let Some(own) = attributes(item) {
        own.extend(more.filter(|attribute| attribute.path().is_ident("cfg")).cloned());
    }
}

/// The bodiless implementations for each exported type; under nothing those for types of others.
fn implementations<'a>(
    library: &Library,
    types: &BTreeSet<&'a Place>,
) -> BTreeMap<Option<&'a Place>, Vec<Item>> {
    let mut found: BTreeMap<Option<&Place>, Vec<(String, Item)>> = BTreeMap::new();
    for (module, items) in &library.modules {
        let exported = |name: &str| {
            let place = library.type_seen_from(module, name)?;
            Some(types.get(&place).copied())
        };
        for item in items {
            let Item::Impl(given) = item else { continue };
            let trait_name = given.trait_.as_ref().and_then(|(path, _)| path.segments.last());
            if trait_name.is_some_and(|last| exported(&last.ident.to_string()) == Some(None)) {
                continue;
            }
            let own = match last_name(&given.self_ty).and_then(|name| exported(&name)) {
                Some(None) => continue,
                Some(own) => own,
                None if trait_name.is_some_and(|last| {
                    words(&last.arguments.to_token_stream().to_string())
                        .any(|word| exported(word).flatten().is_some())
                }) =>
                {
                    None
                }
                None => continue,
            };
            if let Some(shown) = outline(given) {
                let key = format!("{}{}", u8::from(given.trait_.is_some()), head(&shown));
                found.entry(own).or_default().push((key, Item::Impl(shown)));
            }
        }
    }
    found
        .into_iter()
        .map(|(own, mut items)| {
            items.sort_by(|a, b| a.0.cmp(&b.0));
            (own, items.into_iter().map(|(_, item)| item).collect())
        })
        .collect()
}

fn head(shown: &ItemImpl) -> String {
    let trait_name = shown.trait_.as_ref().map(|(path, _)| path.to_token_stream().to_string());
    trait_name.unwrap_or_default()
}

/// What others see of an implementation; nothing if there is nothing.
fn outline(given: &ItemImpl) -> Option<ItemImpl> {
    let mut shown = given.clone();
    keep_telling(&mut shown.attrs);
    let is_trait = given.trait_.is_some();
    shown.items = given.items.iter().filter_map(|item| seen(item, is_trait)).collect();
    (is_trait || !shown.items.is_empty()).then_some(shown)
}

fn seen(item: &ImplItem, of_trait: bool) -> Option<ImplItem> {
    match item {
        ImplItem::Fn(method) if !of_trait && is_public(&method.vis) => {
            let mut attrs = method.attrs.clone();
            if is_for_tests(&attrs) {
                return None;
            }
            keep_telling(&mut attrs);
            let (vis, sig) = (&method.vis, bare_signature(method.sig.clone()));
            Some(ImplItem::Verbatim(quote!(#(#attrs)* #vis #sig;)))
        }
        ImplItem::Const(value) if of_trait || is_public(&value.vis) => {
            let mut value = value.clone();
            keep_telling(&mut value.attrs);
            Some(ImplItem::Const(value))
        }
        ImplItem::Type(_) if of_trait => Some(item.clone()),
        _ => None,
    }
}

/// An item without its words, private fields and bodies.
fn bare(mut item: Item) -> Item {
    if let Some(attributes) = attributes(&mut item) {
        keep_telling(attributes);
    }
    match &mut item {
        Item::Struct(it) => hide(&mut it.fields),
        Item::Enum(it) => {
            for variant in &mut it.variants {
                keep_telling(&mut variant.attrs);
                variant.fields.iter_mut().for_each(|field| keep_telling(&mut field.attrs));
            }
        }
        Item::Trait(it) => {
            for item in &mut it.items {
                if let TraitItem::Fn(method) = item {
                    keep_telling(&mut method.attrs);
                    let empty = method.default.is_some().then(|| parse_quote!({}));
                    method.default = empty;
                }
            }
        }
        Item::Fn(it) => {
            let (attrs, vis, sig) = (&it.attrs, &it.vis, bare_signature(it.sig.clone()));
            return Item::Verbatim(quote!(#(#attrs)* #vis #sig;));
        }
        _ => {}
    }
    item
}

fn bare_signature(mut signature: Signature) -> Signature {
    for input in &mut signature.inputs {
        match input {
            FnArg::Receiver(this) => this.mutability = None,
            FnArg::Typed(typed) => {
                if let Pat::Ident(name) = &mut *typed.pat {
                    name.mutability = None;
                }
            }
        }
    }
    signature
}

fn hide(fields: &mut Fields) {
    fields.iter_mut().for_each(|field| keep_telling(&mut field.attrs));
    let shown = |field: &Field| is_public(&field.vis);
    let hidden = quote::format_ident!("{HIDDEN}");
    match fields {
        Fields::Named(FieldsNamed { named, .. }) if !named.iter().all(shown) => {
            *named = std::mem::take(named).into_iter().filter(shown).collect();
            let more: FieldsNamed = parse_quote!({ #hidden: #hidden });
            named.extend(more.named);
        }
        Fields::Unnamed(FieldsUnnamed { unnamed, .. }) => {
            for field in unnamed.iter_mut().filter(|field| !shown(field)) {
                field.ty = parse_quote!(#hidden);
                field.vis = Visibility::Inherited;
            }
        }
        _ => {}
    }
}

/// Keeps the attributes that say something to a user.
fn keep_telling(attributes: &mut Vec<Attribute>) {
    attributes.retain(|attribute| {
        let tokens = attribute.meta.to_token_stream().to_string();
        let told = ["non_exhaustive", "must_use", "deprecated", "derive", "cfg", "repr", "from"];
        told.iter().any(|name| attribute.path().is_ident(name))
            || attribute.path().is_ident("cfg_attr") && tokens.contains("derive")
    });
    for attribute in attributes {
        // Why a value must be used is for the reader of the documentation.
        if attribute.path().is_ident("must_use") {
            *attribute = parse_quote!(#[must_use]);
        }
    }
}

fn printed(items: Vec<Item>) -> String {
    let file = syn::File { shebang: None, frontmatter: None, attrs: Vec::new(), items };
    let field = format!("{HIDDEN}: {HIDDEN},");
    prettyplease::unparse(&file).replace(&field, "// private fields").replace(HIDDEN, "_")
}

/// A type of this library's own that is shown, but has no public name.
fn unnameable(library: &Library, exports: &[Export], text: &str) -> Result<()> {
    let names: BTreeSet<&str> = exports.iter().map(|export| export.name.as_str()).collect();
    let variants: BTreeSet<String> = exports
        .iter()
        .filter_map(|export| match &export.item {
            Item::Enum(it) => Some(it.variants.iter().map(|variant| variant.ident.to_string())),
            _ => None,
        })
        .flatten()
        .collect();
    let types = library.modules.values().flatten().filter(|item| is_type(item)).filter_map(ident);
    let own: BTreeSet<String> = types.map(ToString::to_string).collect();
    // A derived trait may bear the name of a private type.
    let mut parts = text.split("#[");
    let first = parts.next().into_iter();
    let code = first.chain(parts.filter_map(|part| part.split_once("]\n")).map(|(_, rest)| rest));
    let lost = code
        .flat_map(words)
        .find(|word| own.contains(*word) && !names.contains(word) && !variants.contains(*word));
    ensure!(lost.is_none(), "{} is shown, but cannot be named", lost.unwrap_or_default());
    Ok(())
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

fn last_name(given: &Type) -> Option<String> {
    match given {
        Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
        Type::Reference(inner) => last_name(&inner.elem),
        _ => None,
    }
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn visibility(item: &Item) -> Option<&Visibility> {
    Some(match item {
        Item::Const(it) => &it.vis,
        Item::Enum(it) => &it.vis,
        Item::Fn(it) => &it.vis,
        Item::Static(it) => &it.vis,
        Item::Struct(it) => &it.vis,
        Item::Trait(it) => &it.vis,
        Item::Type(it) => &it.vis,
        Item::Union(it) => &it.vis,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str, expected: &str) {
        let shown = text(&Library::of(source).unwrap()).unwrap();
        assert_eq!(shown.strip_prefix(OPENING).unwrap(), expected);
    }

    #[test]
    fn what_can_be_named_is_shown_without_bodies_and_nothing_else_is() {
        let source = r#"
            mod inner {
                /// Words.
                #[derive(Clone)]
                #[must_use = "reasons"]
                pub struct Shown<T> { pub open: u8, closed: T }
                pub struct Unseen;
                pub struct Tuple(pub u8, String);
                impl<T> Shown<T> {
                    pub fn take(mut self, mut n: u8) -> Self { self.open = n; self }
                    fn quiet(&self) {}
                    #[cfg(test)]
                    pub fn tested(&self) {}
                }
                impl Unseen { pub fn never(&self) {} }
                impl<T> Drop for Shown<T> { fn drop(&mut self) {} }
                pub trait Quiet {}
                impl<T> Quiet for Shown<T> {}
                impl From<Shown<u8>> for String { fn from(_: Shown<u8>) -> Self { String::new() } }
            }
            mod other {
                use super::inner::Shown;
                impl<T> Iterator for Shown<T> { type Item = T; fn next(&mut self) -> Option<T> { None } }
                pub(crate) struct Unshown;
            }
            mod passed_on {
                use crate::Tuple;
                impl Tuple { pub fn far(&self) {} }
            }
            pub use inner::{Shown, Tuple};
            #[cfg(feature = "more")]
            pub mod place { pub const N: u8 = 7; fn hidden() {} }
            pub trait Verb { fn must(&self); fn may(&self) { self.must() } }
            #[cfg(test)]
            pub fn tested() {}
        "#;
        check(
            source,
            r#"
#[derive(Clone)]
#[must_use]
pub struct Shown<T> {
    pub open: u8,
    // private fields
}
impl<T> Shown<T> {
    pub fn take(self, n: u8) -> Self;
}
impl<T> Drop for Shown<T> {}
impl<T> Iterator for Shown<T> {
    type Item = T;
}

pub struct Tuple(pub u8, _);
impl Tuple {
    pub fn far(&self);
}

pub trait Verb {
    fn must(&self);
    fn may(&self) {}
}

impl From<Shown<u8>> for String {}

// place

#[cfg(feature = "more")]
pub const N: u8 = 7;
"#,
        );
    }

    #[test]
    fn a_type_that_is_shown_and_cannot_be_named_is_an_error() {
        let source = "mod inner { pub struct Lost; } pub fn gives() -> inner::Lost { inner::Lost }";
        let error = text(&Library::of(source).unwrap()).unwrap_err();
        assert_eq!(error.to_string(), "Lost is shown, but cannot be named");
    }

    #[test]
    fn a_public_glob_or_another_name_is_an_error() {
        let shown = |source: &str| text(&Library::of(source).unwrap());
        assert!(shown("mod inner { pub struct A; } pub use inner::*;").is_err());
        assert!(shown("mod inner { pub struct A; } pub use inner::A as B;").is_err());
    }
}
