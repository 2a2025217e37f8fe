"""Texts that have no statement, or only a comment."""

TEXTS = [
    "", " ", ";", ";;", "\t", "/* nothing */", "/* nothing */;", "-- nothing", "--", "--nothing", "# nothing", "#",
    "/**/", "/* a */ /* b */", "/* a */ -- b", "/*! */", "/*!40000 */", "/*!99999 SELECT 1 */", "/*!40000 SELECT 1 */",
    "/*+ nothing */", "/* unended", "/*", "*/", "SELECT 1 /* unended", "SELECT 1 -- ended", "SELECT 1 # ended",
    "/* before */ SELECT 1", "/* a /* b */ SELECT 1", "/*!40000 SELECT */ 1", "SELECT 1; /* after */", "SELECT /* in */ 1",
    "-- first\nSELECT 1", "# first\nSELECT 1", "--\tfirst\nSELECT 1", "--first\nSELECT 1",
]  # fmt: skip


def cases(server):
    connection = server.connect()
    for text in TEXTS:
        try:
            yield repr(text), server.answer(connection, text).replace("Firn server", "MySQL server")
        except RuntimeError as error:
            yield repr(text), f"the client says: {error}"


KNOWN = {"';;'": "after a statement without text there is another one"}
