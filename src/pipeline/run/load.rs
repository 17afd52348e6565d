//! The synchronous part of a controller: a load up to the swap of the trees, and the propagation of changes.
//!
//! In: texts, or the id of an import or `foreach` that needs a new tree ([`LoadRequest`]). Out: if the load succeeds,
//! the new tree is in force, and the caller receives the old tree and the components to stop and to start. Otherwise
//! nothing has changed, and the caller receives a refusal.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use crate::check::graph::Graph;
use crate::check::settings::http::{self, HttpSettings};
use crate::check::settings::logging::{self, LoggingSettings};
use crate::check::settings::{livedebugging, remote};
use crate::check::{Extent, analyze};
use crate::component::{HealthState, ValidArguments};
use crate::run::engine::Engine;
use crate::run::evaluate::refuse_not_built;
use crate::run::instance::Instance;
use crate::run::library;
use crate::run::names::Names;
use crate::run::node::{Changes, Node};
use crate::run::plan::{Plan, Running, plan};
use crate::run::prepare::{Apply, PrepareHttp, PrepareRemote, refused_settings, unsupported};
use crate::run::propagate::Propagate;
use crate::run::stage::{Accept, Stage};
use alluvium_lang::diagnostic::Severity;
use alluvium_lang::{Diagnostic, Diagnostics, Source, Span, codes};

/// Loads trees and propagates changes through the tree in force.
pub(super) struct Loader {
    pub(super) engine: Engine,
    pub(super) on_logging: Arc<dyn Fn(&LoggingSettings) + Send + Sync>,
    pub(super) on_http: PrepareHttp,
    pub(super) on_remote: Option<PrepareRemote>,
    pub(super) changes: Arc<Changes>,
    /// Held while arguments are evaluated and updated.
    pub(super) changing: Mutex<()>,
    /// The tree in force; shared with the metrics, which count its components.
    pub(super) in_force: Arc<RwLock<Arc<Running>>>,
}

/// The change that a load should make.
#[derive(Clone)]
pub(super) enum LoadRequest {
    /// A configuration: the texts of its files.
    Load(Arc<Vec<Source>>),
    /// The id of an import or `foreach` in the configuration in force whose shape has changed: a `foreach` has other
    /// items, or an import has other arguments or another text.
    Shape(Arc<str>),
}

/// The result of a load that has put a new tree in force. Components still have to be stopped and started.
pub(super) struct SwapResult {
    pub(super) old: Arc<Running>,
    pub(super) plan: Plan,
    pub(super) warnings: Diagnostics,
}

/// A refused load, which has changed nothing.
pub(super) struct RefusedLoad {
    pub(super) diagnostics: Diagnostics,
    /// Running components that may hold a resource that the load needed.
    pub(super) blocking: Vec<Arc<Node>>,
    /// Ids of the components of `blocking` that have other arguments in the new configuration, so that they must be
    /// rebuilt.
    pub(super) to_replace: BTreeSet<Arc<str>>,
    /// True if an evaluation failed because it depends on a component that would be updated later.
    is_stale: bool,
}

impl From<Diagnostics> for RefusedLoad {
    fn from(diagnostics: Diagnostics) -> Self {
        Self {
            diagnostics,
            blocking: Vec::new(),
            to_replace: BTreeSet::new(),
            is_stale: false,
        }
    }
}

/// A tree that is ready to replace the tree in force.
struct Prepared {
    running: Running,
    logging: LoggingSettings,
    live_debugging: bool,
    /// Functions that apply settings that do not belong to components: the protection of the listener, and the
    /// configuration from a server.
    apply: Vec<Apply>,
    /// Components that were updated during the load, with their previous arguments.
    updated: Vec<(Arc<Node>, ValidArguments)>,
    /// Ids of imports and `foreach` blocks that need a new tree because of the updates.
    shape: Vec<Arc<str>>,
    warnings: Diagnostics,
}

impl Loader {
    /// Returns the tree of instances in force.
    pub(super) fn running(&self) -> Arc<Running> {
        self.in_force.read().clone()
    }

    /// Prepares a new tree and puts it in force. `replace` contains the ids of stopped components to rebuild.
    pub(super) fn prepare_and_swap(
        &self,
        request: &LoadRequest,
        replace: &BTreeSet<Arc<str>>,
    ) -> Result<SwapResult, RefusedLoad> {
        let _changing = self.changing.lock();
        let _evaluating = self.engine.metrics.evaluate();
        let current = self.running();
        let prepared = match request {
            LoadRequest::Load(sources) => self.prepare_load(sources, &current, replace)?,
            LoadRequest::Shape(cause) => {
                let root = &current.root;
                let accept = Accept::Only(cause.clone());
                let folder = &root.surroundings.module_path;
                self.prepare(&root.graph, folder, &current, accept, replace, &Diagnostics::new())?
            }
        };
        let Prepared {
            running,
            logging,
            live_debugging,
            apply,
            updated,
            shape,
            warnings,
        } = prepared;
        let plan = plan(&current, &running);
        for (node, _) in &updated {
            node.set_evaluation(HealthState::Healthy, "component evaluated");
        }
        // A component whose evaluation failed may have the same arguments as before the failure: it needs no update,
        // but is healthy again.
        for node in running.nodes.values().filter(|node| node.evaluation_failed()) {
            if !running.has_refused_content(node) {
                node.set_evaluation(HealthState::Healthy, "component evaluated");
            }
        }
        *self.in_force.write() = Arc::new(running);
        // Because of updates during the load, an import or a `foreach` may need a new tree.
        self.changes.add_shapes(shape);
        apply.into_iter().for_each(|apply| apply());
        if matches!(request, LoadRequest::Load(_)) {
            (self.on_logging)(&logging);
            // Only the program's own configuration may enable live debugging, not a remote one.
            if self.engine.module.is_empty() {
                let live = &self.engine.context.live;
                if live_debugging { live.enable() } else { live.disable() }
            }
        }
        Ok(SwapResult {
            old: current,
            plan,
            warnings,
        })
    }

    fn prepare_load(
        &self,
        sources: &[Source],
        current: &Running,
        replace: &BTreeSet<Arc<str>>,
    ) -> Result<Prepared, RefusedLoad> {
        let extent = if self.engine.module.is_empty() {
            Extent::Run
        } else {
            Extent::RunRemote
        };
        let (graph, diagnostics) = analyze(sources, &self.engine.catalog, self.engine.stability, extent);
        let warnings = refuse_not_built(diagnostics);
        if warnings.has_errors() {
            return Err(warnings.into());
        }
        let graph = Arc::new(graph);
        let folder = sources.first().map(|first| folder_of(first.path())).unwrap_or_default();
        let all = self.prepare(&graph, &folder, current, Accept::All, replace, &warnings);
        if all.is_ok() || !current.nodes.values().any(|node| current.has_refused_content(node)) {
            return all;
        }
        // The new content of an import may cause the errors, so try again with its last valid content.
        let old = self.prepare(&graph, &folder, current, Accept::AllButContent, replace, &warnings);
        old.or(all)
    }

    /// Builds a tree. New components are built before any component is updated, so they use the exports from before the
    /// updates. If an evaluation fails because of a value that an update would change, a second attempt updates
    /// components during the build. If the second attempt fails as well, it undoes its updates.
    fn prepare(
        &self,
        graph: &Arc<Graph>,
        folder: &Arc<str>,
        current: &Running,
        accept: Accept,
        replace: &BTreeSet<Arc<str>>,
        warnings: &Diagnostics,
    ) -> Result<Prepared, RefusedLoad> {
        let new = || Stage::new(&self.engine, current, accept.clone(), replace);
        match self.prepare_in(new(), graph, folder, warnings) {
            Err(refused) if refused.is_stale => self.prepare_in(new().eager(), graph, folder, warnings),
            prepared => prepared,
        }
    }

    fn prepare_in(
        &self,
        mut stage: Stage<'_>,
        graph: &Arc<Graph>,
        folder: &Arc<str>,
        warnings: &Diagnostics,
    ) -> Result<Prepared, RefusedLoad> {
        let is_load = !matches!(stage.accept, Accept::Only(_));
        let root = stage.root(graph.clone(), folder.clone());
        let mut diagnostics = warnings.clone();
        diagnostics.extend(std::mem::take(&mut stage.diagnostics));
        let mut errors_in_settings = Diagnostics::new();
        let logging = match graph.settings.get("logging") {
            None => LoggingSettings::default(),
            Some(text) => {
                let names = Names::of(&root, &self.engine.common, None);
                logging::settings(text, &names.evaluate()).unwrap_or_else(|errors| {
                    errors_in_settings.extend(errors);
                    LoggingSettings::default()
                })
            }
        };
        let live_debugging = match graph.settings.get("livedebugging") {
            None => false,
            Some(text) => {
                let names = Names::of(&root, &self.engine.common, None);
                livedebugging::settings(text, &names.evaluate()).unwrap_or_else(|errors| {
                    errors_in_settings.extend(errors);
                    false
                })
            }
        };
        let mut apply = Vec::new();
        if is_load {
            for prepared in [self.protection(graph, &root), self.remote(graph, &root)] {
                match prepared {
                    Ok(prepared) => apply.extend(prepared),
                    Err(errors) => errors_in_settings.extend(errors),
                }
            }
        }
        // The static checks have resolved all names, so a name without a value belongs to a node that failed.
        let has_failed = root.entries.iter().any(Option::is_none);
        let follows = |error: &Diagnostic| has_failed && error.code == codes::UNKNOWN_IDENTIFIER;
        diagnostics.extend(errors_in_settings.into_iter().filter(|error| !follows(error)).collect());
        if !diagnostics.has_errors() && has_failed {
            let message = "a part of the configuration could not be evaluated";
            let source = Source::new("", "");
            diagnostics.push(Diagnostic::error(
                codes::BUILD_FAILED,
                &source,
                Span::default(),
                message,
            ));
        }
        diagnostics.sort();
        if diagnostics.has_errors() {
            restore_arguments(std::mem::take(&mut stage.updated));
            return Err(refused(diagnostics, &stage));
        }
        let mut pass = Propagate::of_load(&self.engine);
        if let Err(errors) = pass.process(&root, None) {
            restore_arguments(pass.updated);
            restore_arguments(std::mem::take(&mut stage.updated));
            return Err(refused(errors, &stage));
        }
        let (nodes, order, libraries) = (stage.nodes, stage.order, stage.libraries);
        Ok(Prepared {
            running: Running {
                root,
                nodes,
                order,
                libraries,
            },
            logging,
            live_debugging,
            apply,
            updated: stage.updated.into_iter().chain(pass.updated).collect(),
            shape: pass.shape,
            warnings: diagnostics,
        })
    }

    /// Prepares the settings of the `http` block, without applying them.
    fn protection(&self, graph: &Graph, root: &Instance) -> Result<Option<Apply>, Diagnostics> {
        let Some(text) = graph.settings.get("http") else {
            // Without a block the listener keeps its defaults, so this cannot fail.
            return Ok((self.on_http)(&HttpSettings::default()).ok());
        };
        let names = Names::of(root, &self.engine.common, None);
        let settings = http::settings(text, &names.evaluate())?;
        let apply = (self.on_http)(&settings).map_err(|error| refused_settings(text, &error))?;
        Ok(Some(apply))
    }

    /// Prepares the settings of the `remotecfg` block, without applying them.
    fn remote(&self, graph: &Graph, root: &Instance) -> Result<Option<Apply>, Diagnostics> {
        let text = graph.settings.get("remotecfg");
        let settings = match text {
            None => None,
            Some(text) => {
                let names = Names::of(root, &self.engine.common, None);
                remote::settings(text, self.engine.catalog.http_client(), &names.evaluate())?
            }
        };
        match (&self.on_remote, text) {
            (Some(prepare), Some(text)) => match prepare(settings.as_ref()) {
                Ok(apply) => Ok(Some(apply)),
                Err(error) => Err(refused_settings(text, &error).into()),
            },
            // Without a block there is nothing to prepare, so this cannot fail.
            (Some(prepare), None) => Ok(prepare(None).ok()),
            (None, Some(text)) if settings.is_some() => Err(unsupported(text).into()),
            (None, _) => Ok(None),
        }
    }

    /// Evaluates nodes that refer to changed exports, and updates components whose arguments changed. Returns the ids
    /// of the imports and `foreach` blocks that need a new tree.
    pub(super) fn propagate_changes(&self) -> Vec<Arc<str>> {
        let _changing = self.changing.lock();
        let _evaluating = self.engine.metrics.evaluate();
        let changed = self.changes.take();
        let running = self.running();
        let mut causes = changed.shapes;
        self.engine
            .metrics
            .queue_size
            .set(i64::try_from(changed.ids.len()).unwrap_or(i64::MAX));
        let mut waiting = Vec::new();
        for (id, enqueue_time) in changed.ids {
            match (running.libraries.get(&id), running.nodes.get(&id)) {
                (Some(library), Some(node)) => {
                    if library::content(&node.exports()) != library.content {
                        causes.push(id);
                    } else if node.evaluation_failed() {
                        node.set_evaluation(HealthState::Healthy, "component evaluated");
                    }
                }
                _ if running.root.mark_changed(&id) => waiting.push(enqueue_time),
                _ => {}
            }
        }
        let mut pass = Propagate::of_run(&self.engine);
        // The health of each node records its failures.
        let _ = pass.process(&running.root, None);
        causes.extend(pass.shape);
        for enqueue_time in waiting {
            self.engine.metrics.record_wait(enqueue_time.elapsed());
        }
        self.engine.metrics.queue_size.set(0);
        causes
    }
}

/// Creates a refusal with the components that may hold a needed resource. If the text has an error, the refusal names
/// no components, since stopping them would not help.
fn refused(diagnostics: Diagnostics, stage: &Stage<'_>) -> RefusedLoad {
    let lacks = |diagnostic: &Diagnostic| {
        diagnostic.severity == Severity::Warning
            || matches!(diagnostic.code, codes::BUILD_FAILED | codes::UPDATE_FAILED)
    };
    if !diagnostics.iter().all(lacks) {
        return RefusedLoad {
            is_stale: stage.is_stale,
            ..diagnostics.into()
        };
    }
    let running = stage.current.order.iter().rev();
    let exclusive = running.filter(|node| node.is_exclusive());
    let changed = |node: &Node| stage.changed.contains(&node.id);
    let in_the_way: Vec<Arc<Node>> = exclusive
        .filter(|node| !stage.is_desired(&node.id) || changed(node))
        .cloned()
        .collect();
    RefusedLoad {
        diagnostics,
        is_stale: false,
        to_replace: in_the_way
            .iter()
            .filter(|node| changed(node))
            .map(|node| node.id.clone())
            .collect(),
        blocking: in_the_way,
    }
}

/// Restores the previous arguments of updated components, the last update first.
fn restore_arguments(updated: Vec<(Arc<Node>, ValidArguments)>) {
    for (node, before) in updated.into_iter().rev() {
        if let Err(error) = node.update(&before) {
            let message = format!("cannot restore the previous arguments after a failed reload: {error}");
            tracing::error!(component_id = %node.id, %error, "cannot restore the previous arguments");
            node.set_evaluation(HealthState::Unhealthy, message);
        }
    }
}

/// Returns the folder of a file; `.` if its name has none.
fn folder_of(path: &str) -> Arc<str> {
    match std::path::Path::new(path).parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.display().to_string().into(),
        _ => ".".into(),
    }
}
