use firn_api::PageFilter;

use super::*;

const TEXT: &str = r#"cluster = "000102030405060708090a0b0c0d0e0f"

[[node]]
number = 1
name = "node-1"
address = "127.0.0.1:7401"
client_address = "127.0.0.1:3307"
roles = ["database", "log", "pages", "control"]

[[node]]
number = 2
name = "node-2"
address = "127.0.0.1:7402"
roles = ["log"]
"#;

#[test]
fn a_layout_is_read_and_written() {
    let layout = Layout::parse(TEXT).unwrap();
    assert_eq!(layout.to_text(), TEXT);
    let roles: Vec<_> = layout.members().iter().collect();
    assert_eq!(
        roles,
        [(MemberId(1), MemberRole::Voter), (MemberId(2), MemberRole::Logger)],
        "a node that runs no engine never leads"
    );
    assert_eq!(layout.named("node-2").unwrap().number, NodeId(2));
}

#[test]
fn nodes_are_reached_by_names_too() {
    let text = TEXT.replace("127.0.0.1:74", "firn-0.firn.default.svc:74");
    let layout = Layout::parse(&text).unwrap();
    assert_eq!(layout.to_text(), text);
    assert_eq!(layout.nodes().next().unwrap().address.port(), Some(7401));
    refuse("127.0.0.1:7402", "unix:/run/firn", 10, "which others cannot reach");
}

#[track_caller]
fn refuse(from: &str, to: &str, line: usize, reason: &str) {
    assert!(TEXT.contains(from), "{from}");
    let error = Layout::parse(&TEXT.replace(from, to)).expect_err(to);
    assert_eq!(error.line, line, "{error}");
    assert!(error.reason.contains(reason), "{error}");
}

#[test]
fn pages_are_divided_as_the_layout_says() {
    let division = "\npage_chunks = 4\nextent_pages = 64\n";
    let text = TEXT.replacen('\n', division, 1);
    let layout = Layout::parse(&text).unwrap();
    assert_eq!(layout.to_text(), text);
    assert_eq!((layout.extents.pages, layout.chunks().count()), (64, 4));
    assert_eq!(layout.chunks_on(NodeId(1)).count(), 4, "one node has all pages");
    let mut taken = 0;
    for page in (0..64).map(|space| firn_base::PageId::new(firn_base::SpaceId(space), PageNo(0))) {
        let filters = layout.chunks().map(|(chunk, _)| layout.held_part(chunk).unwrap().filter());
        taken += filters.filter(|filter| filter.takes(page)).count();
    }
    assert_eq!(taken, 64, "each page is in one chunk");
    let whole = Layout::parse(TEXT).unwrap().held_part(ChunkId(1)).unwrap();
    assert_eq!((whole.filter(), whole.is_alone), (PageFilter::All, true));
    let first = "cluster = ";
    refuse(first, "page_copies = 2\ncluster = ", 1, "page_copies is 1 to 1");
    refuse(first, "page_chunks = 0\ncluster = ", 1, "page_chunks is 1 to 256");
    refuse(first, "page_chunks = 257\ncluster = ", 1, "page_chunks is 1 to 256");
    refuse(first, "extent_pages = 0\ncluster = ", 1, "extent_pages is above 0");
    refuse(first, "page_chunks = true\ncluster = ", 1, "page_chunks is a number");
}

#[test]
fn a_layout_says_which_nodes_have_pages_that_were_moved() {
    let text = |lists: &str| {
        let more = format!("\npage_nodes = {lists}\nasynchronous_zones = [\"far\"]\n");
        let far = |number: u64| {
            format!(
                "\n[[node]]\nnumber = {number}\nname = \"far-{number}\"\n\
                 address = \"10.0.0.{number}:7400\"\nclient_address = \"10.0.0.{number}:3306\"\n\
                 roles = [\"database\", \"log\", \"pages\", \"control\"]\nzone = \"far\"\n"
            )
        };
        TEXT.replacen('\n', &more, 1) + &far(7) + &far(9)
    };
    let moved = Layout::parse(&text("[[1, 9]]")).unwrap();
    assert_eq!(moved.to_text(), text("[[1, 9]]"));
    assert_eq!([1, 7, 9].map(|node| moved.chunks_on(NodeId(node)).count()), [1, 0, 1]);
    let spread = Layout::parse(&text("[[1, 7]]")).unwrap().to_text();
    assert!(spread.contains("page_copies = 2") && !spread.contains("page_nodes"), "{spread}");
    let refused = |lists| Layout::parse(&text(lists)).unwrap_err().reason;
    assert!(refused("[[1]]").contains("zone 'far' would have no copy"));
    assert!(refused("[[1, 2, 7]]").contains("2, which is no page node"));
    assert!(refused("[[1, 7], [1, 7]]").contains("2 lists, and page_chunks is 1"));
    assert!(refused("[[]]").contains("0 nodes in a list"));
    assert!(refused("[[1, 7]]\npage_copies = 2").contains("leave page_copies out"));
    assert!(refused("[1, 7]").contains("lists the numbers"));
    let many: String = (11..11 + MAX_COPIES)
        .map(|number| {
            format!(
                "\n[[node]]\nnumber = {number}\nname = \"p{number}\"\n\
                 address = \"10.0.0.{number}:7400\"\nroles = [\"pages\"]\n"
            )
        })
        .collect();
    assert!(Layout::parse(&(text("[[1, 9]]") + &many)).is_ok(), "not all of them have all pages");
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    refuse("number = 2", "number = 1", 10, "has the number, name or address of 'node-1'");
    refuse("name = \"node-2\"", "name = \"-\"", 10, "no name of a node");
    refuse("127.0.0.1:7402", "localhost", 13, "is an address");
    refuse("roles = [\"log\"]", "roles = [\"logs\"]", 14, "roles is a list of");
    refuse("number = 2", "numero = 2", 11, "'numero' is none of");
    refuse("client_address = \"127.0.0.1:3307\"\n", "", 3, "needs a client_address");
    refuse("\"database\", \"log\"", "\"database\"", 3, "needs the role log as well");
    let all = r#"["database", "log", "pages", "control"]"#;
    refuse(all, r#"["log"]"#, 1, "no node has the role database");
    refuse(", \"control\"", "", 1, "no node has the role control");
    refuse("000102", "", 1, "cluster id");
}

#[test]
fn a_layout_says_which_moment_of_an_archive_its_cluster_begins_with() {
    let origin = "
[origin]
archive = \"file:///backup/a \\\"b\\\" \\\\c\"
position = 300
transaction_ids = 40
commit_timestamps = 50
";
    let (cluster, nodes) = TEXT.split_at(TEXT.find('\n').unwrap() + 1);
    let text = [cluster, origin, nodes].concat();
    let layout = Layout::parse(&text).unwrap();
    assert_eq!(layout.to_text(), text);
    let found = layout.origin().unwrap();
    assert_eq!((found.archive.as_str(), found.position), ("file:///backup/a \"b\" \\c", Lsn(300)));
    let begins = Layout::parse(TEXT).unwrap().beginning_with(found.clone()).unwrap();
    assert_eq!(begins, layout);
    let divided = text.replacen('\n', "\npage_chunks = 2\n", 1);
    let error = Layout::parse(&divided).unwrap_err();
    assert!(error.reason.contains("leave page_chunks out"), "{error}");
    let error = Layout::parse(&text.replace("position = 300", "position = \"end\"")).unwrap_err();
    assert_eq!((error.line, error.reason.as_str()), (5, "position is a number"));
}

#[test]
fn the_origin_is_kept_in_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let disk = firn_base::disk::SystemDisk;
    let path = directory.path().join("node");
    assert_eq!(Origin::read(&disk, &path).unwrap(), None);
    let watermarks = Watermarks { trx_id_limit: TrxId(5), cts_limit: Cts(6) };
    let origin = |position| Origin { archive: "file:///a".to_owned(), position, watermarks };
    // The first attempt was interrupted.
    origin(Lsn(7)).write(&disk, &path).unwrap();
    origin(Lsn(8)).write(&disk, &path).unwrap();
    assert_eq!(Origin::read(&disk, &path).unwrap(), Some(origin(Lsn(8))));
}

#[test]
fn a_zone_that_follows_reads_what_its_own_members_have() {
    let third = "\n[[node]]\nnumber = 3\nname = \"node-3\"\naddress = \"127.0.0.1:7403\"\n\
                 client_address = \"127.0.0.1:3309\"\n\
                 roles = [\"database\", \"log\", \"pages\", \"control\"]\nzone = \"west\"\n\
                 \n[[node]]\nnumber = 4\nname = \"node-4\"\naddress = \"127.0.0.1:7404\"\n\
                 roles = [\"replica\"]\nzone = \"west\"\n";
    let follows = TEXT.replacen('\n', "\nasynchronous_zones = [\"west\"]\n", 1) + third;
    let layout = Layout::parse(&follows).unwrap();
    assert_eq!(layout.to_text(), follows);
    let read_by = |layout: &Layout, node: u64| {
        let members = layout.log_read_by(NodeId(node));
        members.iter().map(|node| node.number.0).collect::<Vec<_>>()
    };
    assert_eq!(layout.members().role(MemberId(3)), Some(MemberRole::Learner));
    assert_eq!(layout.control_members().count(), 1, "it has no vote there either");
    assert_eq!((read_by(&layout, 4), read_by(&layout, 1)), (vec![3], vec![1, 2]));
    let behind = |member: u64| {
        let nodes = layout.page_nodes_behind(NodeId(member));
        nodes.map(|node| node.number.0).collect::<Vec<_>>()
    };
    assert_eq!((behind(1), behind(3)), (vec![1], vec![3]));
    let mut alone = layout.clone();
    alone.log.remove(&MemberId(3));
    assert_eq!(read_by(&alone, 4), [1, 2], "nobody of its zone has the log");
    let votes = Layout::parse(&(TEXT.to_owned() + third)).unwrap();
    assert_eq!(read_by(&votes, 4), [1, 2, 3]);
    let error = Layout::parse(&follows.replace("\"control\"]\nzone", "\"pages\"]\nzone"));
    assert!(error.unwrap_err().reason.contains("no node of zone 'west' has the role control"));
    let error = Layout::parse(&follows.replace("= [\"west\"]", "= [\"east\"]")).unwrap_err();
    assert!(error.reason.contains("no node is in zone 'east'"), "{error}");
}
