//! Reads on several threads, and a writer that counts questions and waits on purpose.

use std::sync::mpsc;

use firn_api::{WriterPlace, WriterPositions};
use firn_base::{Environment, TrxId};

use super::*;

/// A writer whose newest timestamp grows with each question. A question waits until the test lets
/// it go.
struct Slow {
    go: Mutex<mpsc::Receiver<Result<(), WriterError>>>,
    asked: Mutex<mpsc::Sender<()>>,
    visible: AtomicU64,
}

impl WriterNode for Slow {
    fn is_dense(&self) -> bool {
        true
    }

    fn take_place(&self, _: &str) -> Result<Box<dyn WriterPlace>, WriterError> {
        Err(WriterError::NoPlace)
    }

    fn newest(&self) -> Result<WriterPositions, WriterError> {
        let visible = Cts(self.visible.fetch_add(1, Ordering::SeqCst));
        self.asked.lock().send(()).unwrap();
        self.go.lock().recv().unwrap()?;
        Ok(WriterPositions { visible, ..WriterPositions::default() })
    }

    fn is_committing(&self, _: TrxId) -> Result<bool, WriterError> {
        Ok(false)
    }
}

/// What the writer says.
fn commits(visible: u64) -> NewestCommits {
    NewestCommits { visible: Cts(visible), durable: Lsn::default() }
}

struct Scene {
    newest: Arc<Newest>,
    go: mpsc::Sender<Result<(), WriterError>>,
    asked: mpsc::Receiver<()>,
}

fn scene() -> Scene {
    let (go, of_writer) = mpsc::channel();
    let (of_asked, asked) = mpsc::channel();
    let writer = Slow {
        go: Mutex::new(of_writer),
        asked: Mutex::new(of_asked),
        visible: AtomicU64::new(44),
    };
    let newest = Newest::new(Arc::new(writer), Environment::system().clock);
    Scene { newest: Arc::new(newest), go, asked }
}

impl Scene {
    /// Starts a read that has arrived.
    fn read(&self, arrival: Arrival) -> mpsc::Receiver<Result<NewestCommits, WriterError>> {
        let (done, result) = mpsc::channel();
        let newest = Arc::clone(&self.newest);
        let body = move || done.send(newest.since(arrival)).unwrap();
        drop(Environment::system().spawner.spawn("read", Box::new(body)));
        result
    }
}

#[test]
fn a_read_takes_only_answers_whose_questions_began_after_it() {
    let scene = scene();
    let early = scene.newest.arrive();
    let first = scene.read(early);
    scene.asked.recv().unwrap();
    // Two that come while the first question is under way cannot use its answer.
    let late = [scene.read(scene.newest.arrive()), scene.read(scene.newest.arrive())];
    scene.go.send(Ok(())).unwrap();
    assert_eq!(first.recv().unwrap(), Ok(commits(44)));
    scene.asked.recv().unwrap();
    scene.go.send(Ok(())).unwrap();
    for read in late {
        assert_eq!(read.recv().unwrap(), Ok(commits(45)), "they share one question");
    }
    assert_eq!(
        scene.newest.since(early),
        Ok(commits(45)),
        "no question for one that arrived before"
    );
    assert_eq!(scene.newest.questions(), 2);
}

#[test]
fn a_failure_is_told_to_those_that_waited_for_it_and_no_others() {
    let scene = scene();
    let early = scene.newest.arrive();
    let first = scene.read(early);
    scene.asked.recv().unwrap();
    let failure = WriterError::Unreachable { reason: "a cut".to_owned() };
    scene.go.send(Err(failure.clone())).unwrap();
    assert_eq!(first.recv().unwrap(), Err(failure));
    let next = scene.read(scene.newest.arrive());
    scene.asked.recv().unwrap();
    scene.go.send(Ok(())).unwrap();
    assert_eq!(next.recv().unwrap(), Ok(commits(45)));
    assert_eq!(scene.newest.since(early), Ok(commits(45)));
}

#[test]
fn a_bounded_read_takes_an_answer_that_is_young_enough() {
    let scene = scene();
    let first = scene.read(scene.newest.arrive());
    scene.go.send(Ok(())).unwrap();
    first.recv().unwrap().unwrap();
    assert_eq!(scene.newest.within(Duration::from_secs(600)), Ok(commits(44)));
    firn_base::task::sleep(Duration::from_millis(2));
    scene.go.send(Ok(())).unwrap();
    assert_eq!(scene.newest.within(Duration::from_millis(1)), Ok(commits(45)));
}
