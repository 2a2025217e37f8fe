//! Sessions that leave while the service's own threads are busy.

use firn_wire::{
    Credentials, Execution, FieldDefinition, Login, Prepared, Query, Replies, Session, Status,
    WireError,
};

use super::*;

/// Its sessions are in transactions that can be handed over; they run nothing.
struct Transactions;

impl firn_wire::Service for Transactions {
    fn credentials(&self, _: &str, _: &str) -> Result<Credentials, ServerError> {
        unreachable!("nobody logs in");
    }

    fn open(&self, _: Login) -> Result<Box<dyn Session>, ServerError> {
        unreachable!("sessions are entered by the tests");
    }
}

struct InTransaction {
    has_left: Arc<AtomicBool>,
    can_leave: bool,
}

impl Session for InTransaction {
    fn status(&self) -> Status {
        Status::AUTOCOMMIT | Status::IN_TRANSACTION
    }

    fn leave_session(&mut self) -> bool {
        self.has_left.store(self.can_leave, Ordering::SeqCst);
        self.can_leave
    }

    fn canceller(&self) -> Arc<dyn firn_wire::Canceller> {
        Arc::new(Nothing)
    }

    fn query(&mut self, _: Query<'_>, _: &mut Replies<'_>) -> Result<(), WireError> {
        unreachable!();
    }

    fn prepare(&mut self, _: u32, _: &[u8]) -> Result<Prepared, WireError> {
        unreachable!();
    }

    fn execute(&mut self, _: Execution<'_>, _: &mut Replies<'_>) -> Result<(), WireError> {
        unreachable!();
    }

    fn close_statement(&mut self, _: u32) {}

    fn init_db(&mut self, _: &[u8], _: &mut Replies<'_>) -> Result<(), WireError> {
        unreachable!();
    }

    fn reset(&mut self, _: &mut Replies<'_>) -> Result<(), WireError> {
        unreachable!();
    }

    fn statistics(&mut self) -> String {
        unreachable!();
    }

    fn kill(&mut self, _: u32) -> Result<(), WireError> {
        unreachable!();
    }

    fn field_list(&mut self, _: &[u8], _: &[u8]) -> Result<Vec<FieldDefinition>, WireError> {
        unreachable!();
    }
}

struct Nothing;

impl firn_wire::Canceller for Nothing {
    fn cancel(&self, _: CancelReason) {}
}

fn login(connection: u32) -> LoginFacts {
    LoginFacts {
        connection,
        peer: None,
        user: "root".to_owned(),
        account: "root@localhost".to_owned(),
        schema: None,
        collation: 255,
        capabilities: 0,
        attributes: Vec::new(),
        tls: None,
    }
}

/// A service whose threads never get to what they are given.
fn service_without_threads() -> (Arc<SessionService>, Arc<Serving>) {
    let service = SessionService::new(&Environment::system(), crate::SESSION_SERVICE);
    service.begin(Arc::new(Transactions), Arc::new(Connections::new(1..=100)));
    assert!(service.shared.workers.close(LAST_WAIT));
    let serving = service.shared.serving.lock().clone().unwrap();
    (service, serving)
}

fn enter(service: &SessionService, serving: &Serving, id: u32, can_leave: bool) -> Arc<AtomicBool> {
    let held = Arc::new(Held::new(1, &login(id), &service.shared.environment));
    assert!(serving.connections.adopt(&held.control));
    let has_left = Arc::new(AtomicBool::new(false));
    let session = InTransaction { has_left: Arc::clone(&has_left), can_leave };
    let desk = Arc::new(FrontDesk { events: Mutex::default() });
    let _ = held.begin(Box::new(session), &desk);
    serving.sessions.lock().insert((1, id), held);
    has_left
}

#[test]
fn who_waits_for_idle_sessions_has_them_leave() {
    let (service, serving) = service_without_threads();
    let sessions = [1, 2, 3].map(|id| enter(&service, &serving, id, id != 2));
    service.begin_leaving();
    service.begin_handing_over();
    assert!(service.wait_until_idle(Duration::ZERO), "no command runs");
    assert_eq!(sessions.map(|has_left| has_left.load(Ordering::SeqCst)), [true, false, true]);
    assert_eq!(service.sessions(), 1, "one cannot leave");
}

#[test]
fn a_session_that_is_being_opened_is_not_idle() {
    let (service, serving) = service_without_threads();
    let held = Arc::new(Held::new(1, &login(1), &service.shared.environment));
    serving.sessions.lock().insert((1, 1), held);
    service.begin_leaving();
    service.begin_handing_over();
    assert!(!service.wait_until_idle(Duration::ZERO));
}
