use std::fs;
use std::path::PathBuf;

use clap::CommandFactory;
use clap_mangen::Man;

use crate::args::Cli;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

/// What stands at the foot of each page.
const SOURCE: &str = concat!("fencelock ", env!("CARGO_PKG_VERSION"));

/// Print the manual page
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  fencelock man | man -l -
  fencelock man revoke | man -l -
  fencelock man --all /usr/local/share/man/man1")]
pub(crate) struct Args {
    /// The page of this command; unless given, that of fencelock itself
    command: Option<String>,
    /// Write all pages to this folder instead
    #[arg(long, value_name = "FOLDER", conflicts_with = "command")]
    all: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, context: &Context<'_>) -> Result<Exit, Failure> {
    let pages = pages()?;
    if let Some(folder) = &args.all {
        for (name, page) in &pages {
            let path = folder.join(format!("{name}.1"));
            fs::write(&path, page).map_err(|error| {
                Failure::new(Exit::Broken, format!("{}: {error}", path.display()))
            })?;
        }
        context.output.note(&format!("wrote {} pages", pages.len()));
        return Ok(Exit::Done);
    }
    let wanted = match &args.command {
        Some(command) => format!("fencelock-{command}"),
        None => "fencelock".into(),
    };
    let page = pages.iter().find(|(name, _)| *name == wanted);
    let Some((_, page)) = page else {
        let names = pages
            .iter()
            .filter_map(|(name, _)| name.strip_prefix("fencelock-"));
        let hint = format!("there are {}", names.collect::<Vec<_>>().join(", "));
        return Err(Failure::new(Exit::Usage, format!("no page of {wanted}")).hint(hint));
    };
    context.output.text(page)?;
    Ok(Exit::Done)
}

/// All pages by their names.
fn pages() -> Result<Vec<(String, String)>, Failure> {
    let mut root = Cli::command();
    root.build();
    let visible = root
        .get_subcommands()
        .filter(|command| !command.is_hide_set());
    let commands = std::iter::once(root.clone()).chain(visible.map(|command| {
        // So that the page is found as man finds those of git.
        let name = format!("fencelock-{}", command.get_name());
        command.clone().name(name)
    }));
    commands
        .map(|command| {
            let name = command.get_name().to_owned();
            let mut page = Vec::new();
            Man::new(command).source(SOURCE).render(&mut page)?;
            Ok((name, String::from_utf8_lossy(&page).into_owned()))
        })
        .collect()
}
