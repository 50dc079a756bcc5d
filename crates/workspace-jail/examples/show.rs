//! Shows the start of a file below a directory, and of no other: `show DIRECTORY PATH`.
#![expect(clippy::print_stdout, reason = "an example shows what it found")]

use workspace_jail::{Jail, Options, PageRequest};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (root, path) = arguments.next().zip(arguments.next()).ok_or("show DIRECTORY PATH")?;
    let jail = Jail::open(root.as_ref(), Options::new().read_only(true))?;
    let page = jail.read_page(&path, &PageRequest::new(0, 20))?;
    print!("{}", page.text());
    Ok(())
}
