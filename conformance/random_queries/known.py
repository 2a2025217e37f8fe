"""Which rules explain a difference, by the partner: what MariaDB answers otherwise is no rule for MySQL."""

import known_mariadb
import known_mysql

RULES = {"MySQL": known_mysql.RULES, "MariaDB": known_mariadb.RULES}


def explained(partner, text, firn, other):
    """The name of the rule that explains a difference, or None. Outcomes are rows, or the number of an error."""
    for name, _, holds in RULES[partner]:
        if holds(text, firn, other):
            return name
    return None
