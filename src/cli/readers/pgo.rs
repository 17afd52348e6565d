//! `alluvium pgo`: merges CPU profiles into one profile, for profile-guided optimization by Go's compiler.
//!
//! The merged profile comes from a server, from a data folder, or from files. The profile must contain the start lines
//! of functions.

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;

use crate::cli::common::output;
use crate::cli::common::remote::call_error;
use crate::cli::common::time::now_ms;
use crate::cli::readers::source;
use crate::cli::readers::source::SourceArgs;
use alluvium_profile::decoded::Columns;
use alluvium_profile::pprof::{self, Profile};
use alluvium_wire::proto::types::GoPgo;

/// Arguments of `alluvium pgo`.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Examples:\n  alluvium pgo '{service_name=\"shop\"}' --from now-1d && go build\n  \
                        alluvium pgo '{service_name=\"shop\"}' --data ./alluvium-data\n  \
                        alluvium pgo --file monday.pb.gz --file tuesday.pb.gz -o default.pgo && go build"
)]
pub struct PgoArgs {
    #[command(flatten)]
    pub source: SourceArgs,
    /// Data folder to read directly, in its current state, instead of querying a server. The folder's own server may be
    /// running.
    #[cfg(feature = "server")]
    #[arg(long, value_name = "DIR", conflicts_with = "files")]
    pub data: Option<PathBuf>,
    /// The bucket of the folder's tables, as configured for its server.
    #[cfg(feature = "server")]
    #[command(flatten)]
    pub storage: crate::cli::common::storage::StorageSource,
    /// File to write; `-` is standard output. Go's compiler reads `default.pgo` in the folder of the main package.
    #[arg(short, long, value_name = "FILE", default_value = "default.pgo")]
    pub output: PathBuf,
    /// Number of locations to keep of each stored stack, counted from the leaf; 0 for all. With --file, stacks are
    /// always kept whole.
    #[arg(long, value_name = "COUNT", default_value_t = 5)]
    pub keep_locations: u32,
}

#[expect(clippy::print_stderr, reason = "standard output may be the profile")]
pub(crate) async fn run(args: PgoArgs) -> anyhow::Result<()> {
    #[cfg(feature = "server")]
    if args.data.is_none() && args.storage.is_given() {
        bail!("a bucket can only be read together with --data, the server's data folder");
    }
    let bytes = if args.source.files.is_empty() {
        let columns = stored(&args).await?;
        packed(columns.get())?
    } else {
        packed(args.source.load().await?.profile())?
    };
    if args.output.as_os_str() == "-" {
        return output::write(&bytes);
    }
    output::write_file(&args.output, &bytes)?;
    eprintln!("wrote {}", args.output.display());
    Ok(())
}

/// Returns the merged profile of a server or a data folder. If no type is given, the type is CPU.
async fn stored(args: &PgoArgs) -> anyhow::Result<Columns> {
    let mut query = args.source.query.clone();
    let has_type = |selector: &str| !matches!(selector.trim_start().chars().next(), None | Some('{'));
    if query.profile_type.is_none() && !query.selector.as_deref().is_some_and(has_type) {
        query.profile_type = Some("cpu".to_owned());
    }
    let question = query.question(now_ms())?;
    #[cfg(feature = "server")]
    if let Some(folder) = &args.data {
        let folder = crate::cli::sql::DataFolder::open_by_flags(folder, &args.storage, &args.source.server)?;
        let pgo = crate::query::GoPgo {
            keep_locations: args.keep_locations as usize,
            aggregate_callees: true,
        };
        return source::merged(folder.merge_for_pgo(&question, pgo).await?, &question);
    }
    let pgo = GoPgo {
        keep_locations: args.keep_locations,
        aggregate_callees: true,
    };
    let client = args.source.server.querier().await?;
    let bytes = client
        .merge_for_pgo(question.selection(), pgo)
        .await
        .map_err(call_error)?;
    source::merged(bytes, &question)
}

/// Encodes the profile for Go's compiler, or returns the reason why the compiler would refuse it.
fn packed(profile: &Profile<'_>) -> anyhow::Result<Vec<u8>> {
    let kinds = [("samples", "count"), ("cpu", "nanoseconds")];
    let is_cpu = |kind: &pprof::ValueType<'_>| kinds.contains(&(kind.kind, kind.unit));
    if !profile.sample_types.iter().any(is_cpu) {
        bail!("this is not a CPU profile: Go's compiler needs the sample type samples in count, or cpu in nanoseconds");
    }
    if profile.functions.iter().all(|function| function.start_line == 0) {
        bail!(
            "the profile lacks the start lines of functions, which Go's compiler requires: use profiles \
             that a Go program (1.20 or later) recorded of itself, from files (--file) or from a server that stores \
             start lines"
        );
    }
    Ok(pprof::gzip(&pprof::encode(profile)))
}
