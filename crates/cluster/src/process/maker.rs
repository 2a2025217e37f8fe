//! Makes the parts of a process, each with what it needs of the others and with links to other
//! processes.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use firn_api::LogStore;
use firn_api::cluster::ClusterSeam;
use firn_archive::TakenOver;
use firn_base::Environment;
use firn_base::disk::create_durable_directory;
use firn_base::network::{NodeId, Role};
use firn_control::ChunkId;
use firn_engine::replica::ReplicaOptions;
use firn_link::{Caller, CallerSettings, LateService, LocalNode, Offer, Placement, Service};
use firn_log_service::LOG_SERVICE;
use firn_node::endpoint::EndpointOptions;
use firn_page_service::{PAGE_SERVICE, PageNodeLink};
use firn_region_service::RegionService;
use firn_session_service::{READING_SERVICE, SESSION_SERVICE, SessionService};
use firn_writer_service::WriterService;

use crate::archive_role::{ArchiveParts, ArchiveRole};
use crate::choice;
use crate::clients::{Clients, SessionNodes};
use crate::control_role::Done;
use crate::database::{DatabaseOptions, DatabaseRole};
use crate::engine_pages::EnginePages;
use crate::group_peers::Door;
use crate::handover::{Handovers, MemberLinks};
use crate::health::MetricsDoor;
use crate::layout::{Layout, NodeEntry, Origin};
use crate::links::{Links, NodeLinks};
use crate::log_keeper::{Keeping, KeptForArchive, LogKeeper};
use crate::log_member::{LogMember, MemberFiles, database_of};
use crate::log_role::{Attendants, LogRole, LogRoleParts};
use crate::moments::{self, ClusterWriter, CurrentMoments, OwnMoments};
use crate::node_log::{CurrentLog, LogSource, NodeLog};
use crate::open_chunks::{OpenChunks, PageDoors};
use crate::page_chunk::{PageParts, PagesOptions};
use crate::page_list;
use crate::page_role::{self, PageRole};
use crate::pause::PauseSeat;
use crate::record::{MemberPlace, RecordError, RecordFile};
use crate::replica::{self, ReplicaLinks, ReplicaRole, ReplicaRoleOptions};
use crate::report::ClusterSurveys;
use crate::storage::ClusterStorage;
use crate::view::View;

use super::{Parts, ProcessError, ProcessOptions};

/// The services of parts that open after the server listens.
#[derive(Clone)]
pub(super) struct Doors {
    pub(super) group: Arc<Door>,
    pub(super) log: Arc<LateService>,
    pub(super) pages: PageDoors,
    /// Tells moments of the log to the process that archives.
    pub(super) moments: Arc<LateService>,
    /// Answers replicas while this process writes.
    pub(super) writer: Arc<WriterService>,
    /// Lets replicas of other machines read the memory of the engine that writes here.
    pub(super) regions: Arc<RegionService>,
    /// Runs sessions of other nodes' clients while this process writes.
    pub(super) sessions: Arc<SessionService>,
    /// Runs what they only read while this process has a replica that is open.
    pub(super) readings: Arc<SessionService>,
    /// What this process was told as the next writer.
    pub(super) handovers: Arc<Handovers>,
    /// The pause of an idle cluster.
    pub(super) pause: Arc<PauseSeat>,
}

impl Doors {
    pub(super) fn new(environment: &Environment, pause_after: Option<Duration>) -> Doors {
        let (group, log, pages) = (Arc::default(), Arc::default(), PageDoors::default());
        let (moments, writer) = (Arc::default(), WriterService::new(environment));
        let regions = RegionService::new();
        let sessions = SessionService::new(environment, SESSION_SERVICE);
        let readings = SessionService::new(environment, READING_SERVICE);
        let handovers = Handovers::new(environment);
        let pause = PauseSeat::new(environment, pause_after);
        Doors { group, log, pages, moments, writer, regions, sessions, readings, handovers, pause }
    }

    pub(super) fn offers(&self) -> Vec<Offer> {
        let (pages, list) = (&self.pages.pages, &self.pages.list);
        let on_workers = Placement::Workers;
        let log = self.log.offer(LOG_SERVICE, on_workers);
        let pages = pages.offer(PAGE_SERVICE, on_workers);
        let list = list.offer(page_list::SERVICE, on_workers);
        let moments = self.moments.offer(moments::SERVICE, on_workers);
        let (sessions, readings) = (self.sessions.offer(), self.readings.offer());
        let (writer, regions) = (self.writer.offer(), self.regions.offer());
        let (group, handovers) = (self.group.offer(), self.handovers.offer());
        let pause = self.pause.offer();
        vec![
            group, log, pages, list, moments, writer, regions, sessions, readings, handovers, pause,
        ]
    }
}

/// Makes the parts of a process, with links to other processes where a part needs them.
#[derive(Clone)]
pub(super) struct Maker {
    pub(super) environment: Environment,
    pub(super) view: Arc<View>,
    pub(super) local: Arc<LocalNode>,
    pub(super) own: NodeEntry,
    /// Where the process listens for clients.
    pub(super) client_listen: Option<SocketAddr>,
    pub(super) metrics: Arc<MetricsDoor>,
    /// What the SQL tables about the cluster show.
    pub(super) surveys: Arc<ClusterSurveys>,
    /// What the cluster begins with, if it is not empty.
    pub(super) origin: Option<Arc<Origin>>,
    pub(super) record: Arc<RecordFile>,
    pub(super) options: ProcessOptions,
    pub(super) doors: Doors,
}

impl Maker {
    /// `done` tells control that an order is carried out.
    pub(super) fn parts(&self, done: Done) -> Result<Parts, ProcessError> {
        let own_pages = Arc::<OnceLock<Weak<PageRole>>>::default();
        let log = Arc::new(self.log_role(&done, &own_pages)?);
        let pages = self.page_role(&log, done)?;
        if let Some(pages) = &pages {
            let _ = own_pages.set(Arc::downgrade(pages));
        }
        let archive = pages.as_ref().and_then(|pages| self.archive(&log, pages));
        let engine_pages = self.engine_pages(pages.as_ref());
        let clients = self.clients()?;
        let engine = engine_pages.as_ref().zip(clients.as_ref());
        self.attend(&log, pages.as_ref(), archive.as_ref(), engine);
        let replica = engine_pages.as_ref().zip(clients.as_ref());
        let replica = replica.and_then(|(pages, clients)| self.replica(pages, clients));
        let (door, patience) = (clients, self.options.patience);
        let clients = (self.client_listen, self.own.client_address.clone());
        Ok(Parts { log, pages, archive, door, patience, replica, engine_pages, clients })
    }

    fn link(&self, node: &NodeEntry) -> Caller {
        let settings = CallerSettings {
            wanted: Some(node.number),
            ..CallerSettings::new(node.address.clone())
        };
        Caller::new(&self.environment, Arc::clone(&self.local), settings)
    }

    /// Links of a part of the process.
    fn links(&self) -> Links {
        Links::new(&self.environment, &self.local)
    }

    /// Links to nodes that are chosen from the layout of the moment.
    fn links_to<I>(&self, choose: impl Fn(&Layout) -> I + Send + Sync + 'static) -> NodeLinks
    where
        I: IntoIterator<Item = NodeEntry>,
    {
        let (links, view) = (self.links(), Arc::clone(&self.view));
        Box::new(move || {
            let layout = view.layout();
            links.keep(|node| layout.node(node).is_some());
            choose(&layout).into_iter().map(|node| links.to(&node)).collect()
        })
    }

    /// A link to each member of the log group, by its number.
    fn links_to_members(&self) -> MemberLinks {
        let (links, view) = (self.links(), Arc::clone(&self.view));
        Box::new(move |member| {
            let layout = view.layout();
            links.keep(|node| layout.node(node).is_some());
            Some(links.to(layout.node_of_member(member)?))
        })
    }

    /// Links to the members of the log group whose log this process reads.
    fn links_to_log(&self) -> NodeLinks {
        let own = self.own.number;
        self.links_to(move |layout| layout.log_read_by(own))
    }

    /// `own_pages`: the page node of this process, once there is one.
    fn log_role(
        &self,
        done: &Done,
        own_pages: &Arc<OnceLock<Weak<PageRole>>>,
    ) -> Result<LogRole, ProcessError> {
        let (environment, view) = (self.environment.clone(), Arc::clone(&self.view));
        let (directory, settings) = (self.options.directory.clone(), self.options.node.storage.log);
        let origin = self.origin.clone();
        let open = move |layout: &Layout, place: MemberPlace| {
            let origin = origin.as_deref();
            MemberFiles::open(&environment, &directory, (layout, place), origin, settings)
        };
        let (environment, doors) = (self.environment.clone(), self.doors.clone());
        let start = move |files: MemberFiles| {
            let member = LogMember::start(&environment, files, &view, &doors.group)?;
            doors.log.begin(Arc::clone(&member.service) as Arc<dyn Service>);
            let (clock, store) = (Arc::clone(&environment.clock), Arc::clone(&member.store));
            doors.moments.begin(Arc::new(OwnMoments { clock, store }));
            Ok(member)
        };
        let (doors, own_pages) = (self.doors.clone(), Arc::clone(own_pages));
        let end = move || {
            doors.log.end();
            doors.moments.end();
            if let Some(pages) = own_pages.get().and_then(Weak::upgrade) {
                pages.change_log();
            }
        };
        let linking = self.clone();
        Ok(LogRole::open(LogRoleParts {
            environment: self.environment.clone(),
            directory: self.options.directory.clone(),
            record: Arc::clone(&self.record),
            view: Arc::clone(&self.view),
            links: self.links(),
            link: Box::new(move |node| linking.link(node)),
            open: Box::new(open),
            start: Box::new(start),
            end: Box::new(end),
            done: Arc::clone(done),
        })?)
    }

    /// What begins when the process has a member, now or later.
    fn attend(
        &self,
        log: &LogRole,
        pages: Option<&Arc<PageRole>>,
        archive: Option<&Arc<ArchiveRole>>,
        engine: Option<(&Arc<EnginePages>, &Arc<Clients>)>,
    ) {
        let (maker, pages, archive) = (self.clone(), pages.cloned(), archive.cloned());
        let engine = engine.map(|(pages, clients)| (Arc::clone(pages), Arc::clone(clients)));
        log.attend(Box::new(move |member| {
            let kept = maker.options.archive.as_ref().map(|place| KeptForArchive {
                limit_bytes: place.options.hold_log_bytes,
                own: archive.clone(),
            });
            Attendants {
                keeper: maker.log_keeper(member, pages.as_ref(), kept),
                database: engine
                    .as_ref()
                    .and_then(|(pages, clients)| maker.database(member, pages, clients)),
            }
        }));
    }

    /// The log, for a part that reads it.
    fn log_source(&self, log: &LogRole) -> CurrentLog {
        // A member that joined later may lack log that the pages need, and one that was replaced
        // gets no more: only the log of a founder that is in the group is followed here.
        let (member, voters) = (log.watch(), self.links_to_log());
        let (view, own) = (Arc::clone(&self.view), self.own.number);
        let is_followed = move |member: &Arc<LogMember>| {
            member.is_founder && view.layout().log_member_on(own) == Some(member.member)
        };
        Box::new(move || match member().filter(&is_followed) {
            Some(member) => Some(LogSource::Own(Arc::clone(&member.store) as Arc<dyn LogStore>)),
            None => Some(voters()).filter(|voters| !voters.is_empty()).map(LogSource::Remote),
        })
    }

    /// The archiver, if the process has an archive.
    fn archive(&self, log: &LogRole, pages: &Arc<PageRole>) -> Option<Arc<ArchiveRole>> {
        let place = self.options.archive.clone()?;
        let (member, clock) = (log.watch(), Arc::clone(&self.environment.clock));
        let own_moments = Box::new(move || {
            let store = Arc::clone(&member()?.store);
            Some(OwnMoments { clock: Arc::clone(&clock), store })
        });
        let moments = (self.own.number, own_moments as CurrentMoments);
        let own = self.record.get();
        let parts = ArchiveParts {
            place,
            own_number: self.own.number,
            taken_over: (own.generation > 0).then(|| TakenOver {
                first_epoch: choice::first_epoch(own.generation),
                at: own.taken_over_at,
            }),
            database: database_of(self.view.layout().cluster),
            log: self.log_source(log),
            pages: Arc::clone(pages),
            elsewhere: Arc::new(self.pages_over_links(Some(pages))),
            writer: Arc::new(ClusterWriter::new(moments, &self.view, self.links())),
            view: Arc::clone(&self.view),
        };
        Some(Arc::new(ArchiveRole::start(&self.environment, parts)))
    }

    fn page_role(&self, log: &LogRole, done: Done) -> Result<Option<Arc<PageRole>>, ProcessError> {
        if !self.own.has(Role::Pages) {
            return Ok(None);
        }
        // The chunks are in directories in it, whose names alone they make durable.
        let path = self.options.directory.join(page_role::DIRECTORY);
        create_durable_directory(&*self.environment.disk, &path)
            .map_err(|source| RecordError::Io { path: path.clone(), source })?;
        let log = self.log_source(log);
        let log = NodeLog::new(&self.environment, log, &self.own.name);
        let (links, view, own) = (self.links(), Arc::clone(&self.view), self.own.number);
        let links = move |nodes: &[NodeId]| {
            let layout = view.layout();
            let nodes = nodes.iter().filter(|node| **node != own);
            let nodes = nodes.filter_map(|node| layout.node(*node));
            let link = |node: &NodeEntry| PageNodeLink {
                node: node.number,
                caller: links.to(node),
                is_far: layout.are_apart(own, node.number),
            };
            nodes.map(link).collect()
        };
        let options = PagesOptions {
            path,
            database: database_of(self.view.layout().cluster),
            pages: self.options.node.storage.pages.clone(),
            origin: self.origin.clone(),
            open_archive: Arc::clone(&self.options.open_archive),
        };
        let record = Arc::clone(&self.record);
        let held = Arc::clone(&self.record);
        let part = move |chunk| held.part(chunk);
        let doors = self.doors.pages.clone();
        let open = OpenChunks::new(&self.environment, &self.own.name, doors, part);
        let (view, own) = (Arc::clone(&self.view), self.own.number);
        let others_have = Box::new(move |chunk: ChunkId| {
            let layout = view.layout();
            let mut others = layout.page_nodes().filter(|node| node.number != own);
            others.any(|node| layout.chunks_on(node.number).any(|one| one == chunk))
        });
        let links = Box::new(links);
        let (view, user) = (Arc::clone(&self.view), Arc::default());
        let parts = PageParts { record, view, log, links, others_have, user, done, open };
        Ok(Some(Arc::new(PageRole::start(&self.environment, options, parts, &self.view))))
    }

    fn log_keeper(
        &self,
        log: &LogMember,
        pages: Option<&Arc<PageRole>>,
        archive: Option<KeptForArchive>,
    ) -> LogKeeper {
        let keeping = Keeping {
            store: Arc::clone(&log.store),
            own_number: self.own.number,
            own: pages.cloned(),
            view: Arc::clone(&self.view),
            links: self.links(),
            archive,
        };
        LogKeeper::start(&self.environment, keeping)
    }

    /// Where the engine or the replica reads, if the process may have one.
    fn engine_pages(&self, pages: Option<&Arc<PageRole>>) -> Option<Arc<EnginePages>> {
        if !self.own.has(Role::Database) && !self.own.has(Role::Replica) {
            return None;
        }
        Some(Arc::new(self.pages_over_links(pages)))
    }

    fn pages_over_links(&self, own: Option<&Arc<PageRole>>) -> EnginePages {
        let own = (self.own.number, own.cloned());
        EnginePages::new(&self.environment, own, &self.view, self.links())
    }

    /// The clients' port, if the process has one that does not depend on what it runs.
    fn clients(&self) -> Result<Option<Arc<Clients>>, ProcessError> {
        let roles = [Role::Database, Role::Replica, Role::Proxy];
        if !roles.into_iter().any(|role| self.own.has(role)) {
            return Ok(None);
        }
        let nodes = SessionNodes {
            own: self.own.number,
            reads_here: self.own.has(Role::Replica),
            view: Arc::clone(&self.view),
            commands: self.links(),
            control: self.links(),
            pause: Arc::clone(&self.doors.pause),
        };
        let options = self.endpoint_options();
        let services = [&self.doors.sessions, &self.doors.readings];
        let clients =
            Clients::start(&self.environment, nodes, &options, self.options.writer_wait, services);
        Ok(Some(Arc::new(clients.map_err(ProcessError::Clients)?)))
    }

    fn database(
        &self,
        log: &LogMember,
        pages: &Arc<EnginePages>,
        clients: &Arc<Clients>,
    ) -> Option<DatabaseRole> {
        if !self.own.has(Role::Database) {
            return None;
        }
        let (group, member_log) = (Arc::clone(&log.store), Arc::clone(&log.log));
        let read_from = Arc::clone(pages);
        let view = Arc::clone(&self.view);
        let source = move || {
            let (pages, page_node) = read_from.source()?;
            let (group, log) = (Arc::clone(&group), Arc::clone(&member_log));
            Some(ClusterStorage { group, log, pages, view: Arc::clone(&view), page_node })
        };
        let options = self.database_options(pages, clients);
        let (group, source) = (Arc::clone(&log.store), Box::new(source));
        Some(DatabaseRole::start(&self.environment, group, source, options))
    }

    /// The replica, with links to everything that it needs.
    fn replica(&self, pages: &EnginePages, clients: &Arc<Clients>) -> Option<ReplicaRole> {
        if !self.own.has(Role::Replica) {
            return None;
        }
        let writers =
            |layout: &Layout| layout.with_role(Role::Database).cloned().collect::<Vec<_>>();
        let links = ReplicaLinks {
            log: self.links_to_log(),
            pages: pages.remote()?,
            writers: self.links_to(writers),
        };
        let engine = &self.options.node.engine;
        let replica = ReplicaOptions {
            name: self.own.name.clone(),
            buffer_pool_bytes: engine.buffer_pool_bytes,
            transactions: engine.transactions,
            snapshot_limit: self.options.replica_snapshot_limit,
            ..ReplicaOptions::default()
        };
        let options = ReplicaRoleOptions {
            replica,
            endpoint: EndpointOptions {
                data_dir: self.options.directory.join(replica::DIRECTORY),
                door: Some(Arc::clone(clients.door())),
                ..self.endpoint_options()
            },
            clients: Arc::clone(clients),
            patience: self.options.patience,
            on_state: Arc::clone(&self.options.on_state),
            metrics: Arc::clone(&self.metrics),
            pause: Arc::clone(&self.doors.pause),
        };
        Some(ReplicaRole::start(&self.environment, links, options))
    }

    fn endpoint_options(&self) -> EndpointOptions {
        EndpointOptions {
            listen: self.client_listen,
            // The process answers scrapes.
            metrics_listen: None,
            data_dir: self.options.directory.clone(),
            cluster: Some(Arc::clone(&self.surveys) as Arc<dyn ClusterSeam>),
            ..self.options.endpoint.clone()
        }
    }

    fn database_options(
        &self,
        pages: &Arc<EnginePages>,
        clients: &Arc<Clients>,
    ) -> DatabaseOptions {
        let door = Some(Arc::clone(clients.door()));
        let endpoint = EndpointOptions { door, ..self.endpoint_options() };
        DatabaseOptions {
            writer: Arc::clone(&self.doors.writer),
            regions: Arc::clone(&self.doors.regions),
            clients: Arc::clone(clients),
            node: self.options.node.clone(),
            endpoint,
            patience: self.options.patience,
            on_state: Arc::clone(&self.options.on_state),
            metrics: Arc::clone(&self.metrics),
            handovers: Arc::clone(&self.doors.handovers),
            members: Arc::new(self.links_to_members()),
            pause: Arc::clone(&self.doors.pause),
            replicas: Arc::new(
                self.links_to(|layout| {
                    layout.with_role(Role::Replica).cloned().collect::<Vec<_>>()
                }),
            ),
            are_pages_leaving: {
                let pages = Arc::clone(pages);
                Arc::new(move || pages.are_leaving())
            },
        }
    }
}
