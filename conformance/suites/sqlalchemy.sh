#!/usr/bin/env bash
# SQLAlchemy's dialect compliance suite, from its source distribution, against a Firn of this
# checkout: `conformance/suites/sqlalchemy.sh [PYTEST OPTION…]`.
set -euo pipefail
# shellcheck source=conformance/server.sh
. "$(dirname "${BASH_SOURCE[0]}")/../server.sh"
version=2.1.9
place=$built/sqlalchemy
mkdir -p "$place"
[ -x "$place/python/bin/python" ] || python3 -m venv "$place/python"
"$place/python/bin/pip" install --quiet "sqlalchemy==$version" pymysql==1.2.4 cryptography pytest==9.2.0
if [ ! -d "$place/sqlalchemy-$version" ]; then
    "$place/python/bin/pip" download --quiet --no-deps --no-binary sqlalchemy --dest "$place" "sqlalchemy==$version"
    tar -xzf "$place/sqlalchemy-$version.tar.gz" -C "$place"
fi
start
mariadb -h 127.0.0.1 -P "$port" -u root -e 'CREATE DATABASE test; CREATE DATABASE test_schema'
cd "$place/sqlalchemy-$version"
"$place/python/bin/python" -m pytest test/dialect/test_suite.py -p no:warnings -q -r fE --tb native \
    --dburi "mysql+pymysql://root@127.0.0.1:$port/test" "$@"
