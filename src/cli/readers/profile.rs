//! `alluvium profile`: writes the merge of stored profiles, or of files of any format, as pprof.

use std::io::IsTerminal;
use std::path::PathBuf;

use anyhow::bail;
use clap::Args;

use crate::cli::common::output;
use crate::cli::readers::source::SourceArgs;
use alluvium_profile::pprof;

/// Arguments of `alluvium profile`.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Examples:\n  alluvium profile 'cpu{service_name=\"shop\"}' --from now-15m -o shop.pb.gz\n  \
                        alluvium profile --file app.cpuprofile -o app.pb.gz && go tool pprof -http : app.pb.gz"
)]
pub struct ProfileArgs {
    #[command(flatten)]
    pub source: SourceArgs,
    /// File to write, gzip-compressed unless its name ends with `.pb`; `-` is standard output. Defaults to standard
    /// output, if that is not a terminal.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[expect(clippy::print_stderr, reason = "standard output may be the profile")]
pub(crate) async fn run(args: ProfileArgs) -> anyhow::Result<()> {
    let file = args.output.as_ref().filter(|path| path.as_os_str() != "-");
    if file.is_none() && std::io::stdout().is_terminal() {
        bail!("cannot write a profile to a terminal: add --output FILE or redirect standard output");
    }
    let loaded = args.source.load().await?;
    let plain = pprof::encode(loaded.profile());
    let Some(path) = file else {
        return output::write(&pprof::gzip(&plain));
    };
    let is_plain = path.extension().is_some_and(|extension| extension == "pb");
    let bytes = if is_plain { plain } else { pprof::gzip(&plain) };
    output::write_file(path, &bytes)?;
    eprintln!("wrote {}", path.display());
    Ok(())
}
