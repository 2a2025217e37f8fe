//! Who may talk to whom, and that what they say arrives.

use std::time::Duration;

use firn_base::clock::Clock;
use firn_base::network::{ClusterId, NodeId, NodeIdentity, Role, Roles};

use super::*;
use crate::Authority;

const PATIENCE: Duration = Duration::from_secs(60);
const NOW: Duration = Duration::from_secs(1_795_000_000);
const DAYS: u32 = 30;

/// A clock that stands.
struct Fixed(Duration);

impl Clock for Fixed {
    fn monotonic(&self) -> Duration {
        self.0
    }

    fn wall_time_ms(&self) -> u64 {
        self.0.as_millis() as u64
    }
}

fn identity(node: u64, name: &str) -> NodeIdentity {
    let roles = Roles::of(&[Role::Log]);
    NodeIdentity { cluster: ClusterId(0xc1), node: NodeId(node), name: name.to_owned(), roles }
}

struct TestAuthority {
    certificate: String,
    authority: Authority,
}

fn authority() -> TestAuthority {
    let made = Authority::create(ClusterId(0xc1), NOW, 3650).unwrap();
    let authority = Authority::read(made.certificate.as_bytes(), made.key.as_bytes()).unwrap();
    TestAuthority { certificate: made.certificate, authority }
}

impl TestAuthority {
    /// The network of a node whose clock shows `now`.
    fn network(&self, node: u64, name: &str, now: Duration) -> SecureNetwork {
        let issued = self.authority.issue(&identity(node, name), &[], NOW, DAYS).unwrap();
        let clock = Arc::new(Fixed(now));
        let (certificate, key) = (issued.certificate.as_bytes(), issued.key.as_bytes());
        let read = Credentials::read(self.certificate.as_bytes(), certificate, key, clock);
        SecureNetwork::new(Arc::new(read.unwrap()))
    }
}

fn any_port() -> Address {
    "127.0.0.1:0".parse().unwrap()
}

/// Connects, and lets each side send and receive a message. Returns what each side got.
fn talk(
    client: &dyn Network,
    server: &dyn Network,
) -> (NetworkResult<Option<NodeIdentity>>, NetworkResult<Option<NodeIdentity>>) {
    let listener = server.listen(&any_port()).unwrap();
    std::thread::scope(|scope| {
        let there = scope.spawn(|| {
            let connection = listener.accept(Some(PATIENCE))?;
            let mut message = Vec::new();
            connection.receive(&mut message, Some(PATIENCE))?;
            assert_eq!(message, b"question");
            connection.send(&[b"ans", b"wer"], PATIENCE)?;
            Ok(connection.certified())
        });
        let here = || {
            let connection = client.connect(&listener.address(), Delivery::InOrder, PATIENCE)?;
            connection.send(&[b"question"], PATIENCE)?;
            let mut message = Vec::new();
            connection.receive(&mut message, Some(PATIENCE))?;
            assert_eq!(message, b"answer");
            Ok(connection.certified())
        };
        (here(), there.join().unwrap())
    })
}

fn text<T>(result: NetworkResult<T>) -> String {
    result.map(drop).unwrap_err().to_string()
}

#[test]
fn both_sides_know_each_other() {
    let authority = authority();
    let (a, b) = (authority.network(1, "a", NOW), authority.network(2, "b", NOW));
    let (here, there) = talk(&a, &b);
    assert_eq!(here.unwrap(), Some(identity(2, "b")));
    assert_eq!(there.unwrap(), Some(identity(1, "a")));
}

#[test]
fn long_messages_go_both_ways_at_once() {
    let authority = authority();
    let (a, b) = (authority.network(1, "a", NOW), authority.network(2, "b", NOW));
    let listener = b.listen(&any_port()).unwrap();
    let message = |number: usize| vec![number as u8; [0, 1, 16_384, 5_000_000][number % 4]];
    let exchange = |connection: &dyn Connection| {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0..12 {
                    let sent = message(number);
                    let (head, tail) = sent.split_at(sent.len() / 3);
                    connection.send(&[head, b"", tail], PATIENCE).unwrap();
                }
            });
            let mut received = Vec::new();
            for number in 0..12 {
                connection.receive(&mut received, Some(PATIENCE)).unwrap();
                assert!(received == message(number), "message {number}");
            }
        });
    };
    std::thread::scope(|scope| {
        let there = scope.spawn(|| exchange(&*listener.accept(Some(PATIENCE)).unwrap()));
        let here = a.connect(&listener.address(), Delivery::InOrder, PATIENCE).unwrap();
        exchange(&*here);
        there.join().unwrap();
    });
}

/// The texts of both sides of a connection that one of them refuses.
fn refusals(client: &dyn Network, server: &dyn Network) -> (String, String) {
    let (here, there) = talk(client, server);
    (text(here), text(there))
}

#[test]
fn an_expired_certificate_is_refused_with_both_named() {
    let authority = authority();
    let (a, b) = (authority.network(1, "a", NOW), authority.network(2, "b", NOW));
    // Only one side has a clock that shows it.
    let later = NOW + Duration::from_secs(31 * 24 * 3600);
    let (strict_a, strict_b) = (authority.network(1, "a", later), authority.network(2, "b", later));
    let (here, there) = refusals(&strict_a, &b);
    assert!(here.contains("node 1 (a)") && here.contains("node 2 (b)"), "{here}");
    assert!(here.contains("expired at 2026-") && here.contains("admin certificates"), "{here}");
    assert!(there.contains("refuses the certificate of node 2 (b)"), "{there}");
    let (here, there) = refusals(&a, &strict_b);
    assert!(there.contains("node 2 (b)") && there.contains("of node 1 (a)"), "{there}");
    assert!(here.contains("node 2 (b) of cluster"), "{here}");
    assert!(here.contains("refuses the certificate of node 1 (a)"), "{here}");
}

#[test]
fn a_certificate_of_another_authority_is_refused() {
    let (one, other) = (authority(), authority());
    let (here, _) = refusals(&one.network(1, "a", NOW), &other.network(2, "b", NOW));
    assert!(here.contains("node 1 (a)") && here.contains("node 2 (b)"), "{here}");
    assert!(here.contains("another authority"), "{here}");
}

#[test]
fn nodes_with_and_without_certificates_do_not_talk() {
    let secure = authority().network(1, "a", NOW);
    let plain = SecureNetwork::of_this_machine();
    let (_, there) = refusals(&plain, &secure);
    assert!(there.contains("does not speak TLS") && there.contains("node 1 (a)"), "{there}");
    let (here, _) = refusals(&secure, &plain);
    assert!(here.contains("may run without certificates"), "{here}");
    let (here, there) = talk(&plain, &plain);
    assert_eq!((here.unwrap(), there.unwrap()), (None, None));
}

#[test]
fn without_certificates_nobody_leaves_the_machine() {
    let plain = SecureNetwork::of_this_machine();
    for address in ["0.0.0.0:0", "10.1.2.3:7000", "[::]:0"] {
        let address: Address = address.parse().unwrap();
        let listened = text(plain.listen(&address));
        assert!(listened.contains("firn admin certificates"), "{listened}");
        let connected = text(plain.connect(&address, Delivery::InOrder, PATIENCE));
        assert!(connected.contains("firn admin certificates"), "{connected}");
    }
    plain.listen(&"[::1]:0".parse().unwrap()).map(drop).unwrap();
    let own = plain.listen(&"localhost:0".parse().unwrap()).unwrap();
    let named = format!("localhost:{}", own.address().port().unwrap()).parse().unwrap();
    plain.connect(&named, Delivery::InOrder, PATIENCE).map(drop).unwrap();
    // A name that has another address beside is none of this machine.
    let found = ["127.0.0.1:7000", "10.1.2.3:7000"].map(|text| text.parse::<Address>().unwrap());
    let other = plain.credentials(&named, &found).map(drop).unwrap_err().to_string();
    assert!(other.contains("firn admin certificates"), "{other}");
    let directory = std::env::temp_dir().join(format!("firn-secure-{}", std::process::id()));
    let socket = Address::Unix(directory);
    let secure = authority().network(1, "a", NOW);
    let listener = secure.listen(&socket).unwrap();
    let here = secure.connect(&socket, Delivery::InOrder, PATIENCE).unwrap();
    here.send(&[b"plain"], PATIENCE).unwrap();
    let there = listener.accept(Some(PATIENCE)).unwrap();
    let mut message = Vec::new();
    there.receive(&mut message, Some(PATIENCE)).unwrap();
    assert_eq!((message.as_slice(), there.certified()), (&b"plain"[..], None));
}

#[test]
fn credentials_must_belong_together() {
    let one = authority();
    let issue = |node| one.authority.issue(&identity(node, "n"), &[], NOW, DAYS).unwrap();
    let (first, second) = (issue(1), issue(2));
    let read = |certificate: &str, key: &str| {
        let (authority, clock) = (one.certificate.as_bytes(), Arc::new(Fixed(NOW)));
        Credentials::read(authority, certificate.as_bytes(), key.as_bytes(), clock).map(drop)
    };
    read(&first.certificate, &first.key).unwrap();
    let other = read(&first.certificate, &second.key);
    assert!(matches!(other, Err(CertificateError::OtherKey)), "{other:?}");
    let other = read(&one.certificate, &first.key);
    assert!(matches!(other, Err(CertificateError::NoIdentity)), "{other:?}");
}

#[test]
fn a_node_that_says_it_is_another_than_its_certificate_is_refused() {
    use firn_link::{Caller, CallerSettings, LocalNode, Server, ServerSettings, ServiceId};

    let authority = authority();
    let environment = |network: SecureNetwork| firn_base::Environment {
        network: Arc::new(network),
        ..firn_base::Environment::system()
    };
    let local = |node, name| Arc::new(LocalNode::new(identity(node, name), 0));
    let there = environment(authority.network(2, "b", NOW));
    let server =
        Server::start(&there, local(2, "b"), &any_port(), ServerSettings::default(), Vec::new());
    let server = server.unwrap();
    let here = environment(authority.network(1, "a", NOW));
    let link = |node| Caller::new(&here, local(node, "a"), CallerSettings::new(server.address()));
    let honest = link(1);
    let none = honest.call(ServiceId(1), Vec::new(), PATIENCE).unwrap_err().to_string();
    assert!(none.contains("no service 1"), "{none}");
    assert!(server.peers()[0].peer.is_certified);
    let error = link(3).call(ServiceId(1), Vec::new(), PATIENCE).unwrap_err().to_string();
    assert!(error.contains("says it is node 3") && error.contains("of node 1 (a)"), "{error}");
    // The server notes it after it has told the client.
    let noted = std::iter::repeat_with(|| server.refusals()).find(|noted| !noted.is_empty());
    assert!(noted.unwrap()[0].contains("node 2 (b)"));
}
