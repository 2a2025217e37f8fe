#!/usr/bin/env bash
# Django's own tests of its database layer, from its source distribution, against a Firn of this
# checkout: `conformance/suites/django.sh [APP…]`.
set -euo pipefail
# shellcheck source=conformance/server.sh
. "$(dirname "${BASH_SOURCE[0]}")/../server.sh"
version=5.2.19
place=$built/django
apps="aggregation aggregation_regress annotations backends basic bulk_create composite_pk constraints custom_columns
    custom_lookups custom_pk datatypes dates datetimes db_functions defer delete delete_regress distinct_on_fields
    expressions expressions_case expressions_window extra_regress filtered_relation fixtures force_insert_update
    foreign_object from_db_value generic_relations get_or_create indexes inspectdb introspection known_related_objects
    lookup m2m_through many_to_many many_to_one migrations model_fields model_indexes nested_foreign_keys null_queries
    one_to_one or_lookups ordering prefetch_related queries raw_query reserved_names save_delete_hooks schema
    select_for_update select_related string_lookup timezones transactions update update_only_fields xor_lookups"
mkdir -p "$place"
[ -x "$place/python/bin/python" ] || python3 -m venv "$place/python"
"$place/python/bin/pip" install --quiet "django==$version" pymysql==1.2.4 cryptography
if [ ! -d "$place/django-$version" ]; then
    "$place/python/bin/pip" download --quiet --no-deps --no-binary django --dest "$place" "django==$version"
    tar -xzf "$place/django-$version.tar.gz" -C "$place"
fi
start
cat >"$work/firn_settings.py" <<EOF
import pymysql

pymysql.version_info = (2, 2, 1, "final", 0)
pymysql.install_as_MySQLdb()
DATABASES = {
    alias: {"ENGINE": "django.db.backends.mysql", "NAME": name, "USER": "root", "HOST": "127.0.0.1", "PORT": $port,
            "TEST": {"CHARSET": "utf8mb4"}}
    for alias, name in (("default", "django"), ("other", "django_other"))
}
SECRET_KEY = "x"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = False
EOF
cd "$place/django-$version/tests"
# shellcheck disable=SC2086 # a list of names
PYTHONPATH=$work "$place/python/bin/python" runtests.py --settings firn_settings --parallel 1 --noinput ${*:-$apps}
