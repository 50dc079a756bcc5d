//! Rows that look like many others but for the size of a number: 97.5 among loads below one, 990000 grams among hundreds.
//!
//! The template masks numbers, so such a row is common by its template. Here the number of digits before the decimal point
//! counts too. A few rows of a template may stand out; where many do, sizes simply vary. Linear time.

use crate::keyed::KeyMap;
use crate::shape;
use crate::stage::window::Traits;

/// Least rows of a template before one can stand out.
const CROWD: u32 = 24;
/// Rows of a size that is still an exception.
const FEW: u32 = 2;

/// Whether each row stands out by the size of its numbers.
pub(super) fn outliers(rows: &[&str], traits: &[Traits]) -> Vec<bool> {
    let keys: Vec<Option<u64>> = rows
        .iter()
        .zip(traits)
        .map(|(row, it)| (it.alike >= CROWD).then(|| shape::sizes(row, it.shape)))
        .collect();
    let mut sizes: KeyMap<u32> = KeyMap::default();
    for key in keys.iter().flatten() {
        *sizes.entry(*key).or_insert(0) += 1;
    }
    let is_few = |key: &Option<u64>| {
        key.is_some_and(|key| sizes.get(&key).is_some_and(|&count| count <= FEW))
    };
    let mut exceptions: KeyMap<u32> = KeyMap::default();
    for (_, it) in keys.iter().zip(traits).filter(|(key, _)| is_few(key)) {
        *exceptions.entry(it.shape.template).or_insert(0) += 1;
    }
    let stands_out = |it: &Traits| {
        let count = exceptions.get(&it.shape.template).copied().unwrap_or(0);
        count <= FEW.max(it.alike / 100)
    };
    keys.iter().zip(traits).map(|(key, it)| is_few(key) && stands_out(it)).collect()
}
