"""Which rules explain a difference, by the partner: what MariaDB answers otherwise is no rule for MySQL."""

import known_mariadb
import known_mysql

RULES = {"MySQL": known_mysql.RULES, "MariaDB": known_mariadb.RULES}


def explained(partner, aspect, text, firn, other):
    """The name of the rule that explains a difference in an aspect between two answers, or None."""
    also = known_mysql.ALSO.get(aspect) if partner == "MySQL" else None
    for name, _, holds in RULES[partner]:
        if (also is None or name in also) and holds(text, firn.outcome, other.outcome):
            return name
    if partner == "MySQL" and aspect == "metadata":
        for name, _, holds in known_mysql.METADATA_RULES:
            if holds(text, firn.columns, other.columns):
                return name
    if partner == "MySQL" and aspect == "warnings":
        for name, _, holds in known_mysql.WARNING_RULES:
            if holds(text, set(firn.warnings), set(other.warnings)):
                return name
    return None
