use std::os::unix::fs::PermissionsExt;

use firn_base::clock::SystemClock;
use firn_base::network::Role;

use super::*;

const NOW: Duration = Duration::from_secs(1_795_000_000);

fn request(name: &str) -> NodeRequest {
    NodeRequest { name: name.to_owned(), id: None, roles: None, hosts: Vec::new(), days: 30 }
}

#[test]
fn nodes_are_numbered_and_keep_their_numbers() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = CertificateDirectory::at(temporary.path());
    let none = directory.make_node(&request("a"), NOW).unwrap_err();
    assert!(none.to_string().contains("has no authority"), "{none}");
    let cluster = ClusterId(0xc1);
    assert_eq!(directory.create(cluster, NOW, 3650).unwrap().cluster, cluster);
    let again = directory.create(cluster, NOW, 3650).unwrap_err();
    assert!(again.to_string().contains("--renew"), "{again}");

    let number = |name| directory.make_node(&request(name), NOW).unwrap().node.unwrap().node.0;
    assert_eq!((number("a"), number("b"), number("a")), (1, 2, 1));
    fs::remove_dir_all(directory.of_node("b")).unwrap();
    assert_eq!(number("c"), 3, "a number is not given twice");
    let taken = NodeRequest { id: Some(NodeId(3)), ..request("d") };
    let taken = directory.make_node(&taken, NOW).unwrap_err();
    assert!(taken.to_string().contains("node 3 is c"), "{taken}");
    let own = NodeRequest { id: Some(NodeId(9)), ..request("d") };
    directory.make_node(&own, NOW).unwrap();
    assert_eq!(number("e"), 10);
    let bad = directory.make_node(&request("../f"), NOW).unwrap_err();
    assert!(bad.to_string().contains("cannot be the name"), "{bad}");

    let names = |facts: Vec<CertificateFacts>| {
        facts.into_iter().filter_map(|facts| facts.node).map(|node| node.name).collect::<Vec<_>>()
    };
    assert_eq!(names(directory.list().unwrap()), ["a", "c", "d", "e"]);
}

#[test]
fn a_renewed_certificate_lasts_longer_and_the_rest_stays() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = CertificateDirectory::at(temporary.path());
    directory.create(ClusterId(0xc1), NOW, 10).unwrap();
    let roles = Roles::of(&[Role::Log]);
    let first = directory.make_node(&NodeRequest { roles: Some(roles), ..request("a") }, NOW);
    let first = first.unwrap();
    let later = NOW + Duration::from_secs(3600);
    let second = directory.make_node(&request("a"), later).unwrap();
    assert_eq!(first.node, second.node);
    assert!(second.valid_until > first.valid_until);
    assert_eq!(second.node.unwrap().roles, roles);
    let renewed = directory.renew(later, 100).unwrap();
    assert!(renewed.valid_until > directory.list().unwrap()[1].valid_until);
    let read = Credentials::from_directory(&directory.of_node("a"), Arc::new(SystemClock));
    assert_eq!(read.unwrap().identity().name, "a");
}

#[test]
fn only_the_owner_reads_what_is_written() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = CertificateDirectory::at(temporary.path().join("new"));
    directory.create(ClusterId(0xc1), NOW, 10).unwrap();
    directory.make_node(&request("a"), NOW).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for place in [directory.of_authority(), directory.of_node("a")] {
        assert_eq!(mode(&place), 0o700);
        for entry in fs::read_dir(place).unwrap() {
            let path = entry.unwrap().path();
            assert_eq!(mode(&path), 0o600, "{}", path.display());
        }
    }
}
