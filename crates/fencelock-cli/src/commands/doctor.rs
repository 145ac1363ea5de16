use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::view::Findings;

/// Look for what is wrong with a store, and say what to do about it
///
/// It finds servers that cannot be reached, a version with known bugs, a schema that is missing or
/// was altered, a counter behind what was handed out, a pooler in between, standbys alone, missing
/// rights, clocks that are apart, and more; also where no lock can be taken. It changes nothing.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  fencelock doctor
  fencelock doctor --json | jq '.[] | select(.severity == \"critical\")'

It ends with status 1 when something is critical: then guarantees do not hold, or no lock can be \
                          taken. A warning will hurt; a note is good to know.")]
pub(crate) struct Args {}

pub(crate) async fn run(_: Args, context: &Context<'_>) -> Result<Exit, Failure> {
    let findings = Findings::new(context.installation()?.examine().await?);
    context.output.answer(&findings)?;
    let (criticals, warnings) = (findings.criticals(), findings.warnings());
    if !context.output.is_json() {
        context.output.note(&summary(criticals, warnings));
    }
    Ok(match criticals {
        0 => Exit::Done,
        _ => Exit::Finding,
    })
}

fn summary(criticals: usize, warnings: usize) -> String {
    let warnings = match warnings {
        0 => String::new(),
        1 => "1 warning".into(),
        more => format!("{more} warnings"),
    };
    match criticals {
        0 if warnings.is_empty() => "nothing is wrong, as far as can be seen from here".into(),
        0 => warnings,
        critical if warnings.is_empty() => format!("{critical} critical"),
        critical => format!("{critical} critical, {warnings}"),
    }
}
