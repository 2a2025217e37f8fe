use firn_base::network::{NodeId, Role, Roles};

use super::*;

const NOW: Duration = Duration::from_secs(1_795_000_000);

fn node(cluster: ClusterId) -> NodeIdentity {
    let roles = Roles::of(&[Role::Log]);
    NodeIdentity { cluster, node: NodeId(3), name: "n3".to_owned(), roles }
}

#[test]
fn certificates_say_who_they_are_of_and_until_when() {
    let cluster = ClusterId(0xc1);
    let made = Authority::create(cluster, NOW, 3650).unwrap();
    let facts = CertificateFacts::of_pem(made.certificate.as_bytes()).unwrap();
    assert_eq!((facts.cluster, facts.node), (cluster, None));
    let authority = Authority::read(made.certificate.as_bytes(), made.key.as_bytes()).unwrap();
    assert_eq!(authority.cluster(), cluster);
    let hosts = ["10.0.0.3", "firn-3.firn.default.svc."].map(|text| text.parse().unwrap());
    let issued = authority.issue(&node(cluster), &hosts, NOW, 30).unwrap();
    let certificate = read_certificate(issued.certificate.as_bytes()).unwrap();
    let parsed = EndEntityCert::try_from(&certificate).unwrap();
    let names: Vec<_> = parsed.valid_dns_names().collect();
    assert_eq!(names, [NODE_DNS_NAME, "firn-3.firn.default.svc"]);
    let facts = CertificateFacts::of_pem(issued.certificate.as_bytes()).unwrap();
    assert_eq!(facts.node, Some(node(cluster)));
    assert_eq!(facts.valid_until.as_second() as u64, (NOW + 30 * DAY).as_secs());
    assert_eq!(facts.valid_from.as_second() as u64, (NOW - TOLERANCE).as_secs());
}

#[test]
fn what_does_not_fit_is_refused() {
    let here = Authority::create(ClusterId(1), NOW, 1).unwrap();
    let there = Authority::create(ClusterId(2), NOW, 1).unwrap();
    let read = |certificate: &str, key: &str| {
        Authority::read(certificate.as_bytes(), key.as_bytes()).map(drop)
    };
    let other = read(&here.certificate, &there.key);
    assert!(matches!(other, Err(CertificateError::OtherKey)), "{other:?}");
    let other = read(&here.key, &here.certificate);
    assert!(matches!(other, Err(CertificateError::NotACertificate(_))), "{other:?}");
    let authority = Authority::read(here.certificate.as_bytes(), here.key.as_bytes()).unwrap();
    let other = authority.issue(&node(ClusterId(2)), &[], NOW, 1);
    assert!(matches!(other, Err(CertificateError::OtherCluster { .. })));
    let named = NodeIdentity { name: "a b".to_owned(), ..node(ClusterId(1)) };
    let named = authority.issue(&named, &[], NOW, 1);
    assert!(matches!(named, Err(CertificateError::Name(_))));
    let issued = authority.issue(&node(ClusterId(1)), &[], NOW, 1).unwrap();
    let no_authority = read(&issued.certificate, &issued.key);
    assert!(matches!(no_authority, Err(CertificateError::NoIdentity)), "{no_authority:?}");
}
