"""Queries as trees: how they are written as SQL, and how a tree is made smaller while it still shows a difference.

Children stand in lists, so that a tree can be walked, copied and cut without knowing what a node means:

    Select.items  Select.sources  Select.where …      lists of nodes; those of OPTIONAL may lose members
    Expression.arguments                              may be replaced by a part of their own type or by a constant
"""

import copy
import dataclasses


@dataclasses.dataclass
class Expression:
    """A template with a `{}` for each argument, and the kind of value that it gives."""

    kind: str
    template: str
    arguments: list = dataclasses.field(default_factory=list)

    def sql(self):
        return self.template.format(*(argument.sql() for argument in self.arguments))

    def lists(self):
        return [("arguments", self.arguments)]


@dataclasses.dataclass
class Source:
    """A table, derived table or common table expression of a FROM, and how it is joined to those before it."""

    join: str
    what: list
    alias: str
    on: list

    def sql(self, first):
        inner = self.what[0]
        text = f"({inner.sql()})" if isinstance(inner, (Select, SetOperation)) else inner.sql()
        text += f" {self.alias}"
        if first:
            return text
        return f" {self.join} {text}" + "".join(f" ON {on.sql()}" for on in self.on)

    def lists(self):
        return [("what", self.what), ("on", self.on)]


@dataclasses.dataclass
class Select:
    items: list
    sources: list
    where: list = dataclasses.field(default_factory=list)
    groups: list = dataclasses.field(default_factory=list)
    having: list = dataclasses.field(default_factory=list)
    order: list = dataclasses.field(default_factory=list)
    distinct: bool = False
    rollup: bool = False
    limit: str = ""
    # Common table expressions: (name, query).
    names: list = dataclasses.field(default_factory=list)
    ctes: list = dataclasses.field(default_factory=list)

    def sql(self):
        text = ""
        if self.ctes:
            text += "WITH " + ", ".join(f"{name} AS ({query.sql()})" for name, query in zip(self.names, self.ctes)) + " "
        text += "SELECT " + ("DISTINCT " if self.distinct else "")
        text += ", ".join(f"{item.sql()} AS c{at}" for at, item in enumerate(self.items))
        text += " FROM " + "".join(source.sql(at == 0) for at, source in enumerate(self.sources)) if self.sources else ""
        text += "".join(f" WHERE {where.sql()}" for where in self.where)
        if self.groups:
            text += " GROUP BY " + ", ".join(group.sql() for group in self.groups) + (" WITH ROLLUP" if self.rollup else "")
        text += "".join(f" HAVING {having.sql()}" for having in self.having)
        if self.order:
            text += " ORDER BY " + ", ".join(order.sql() for order in self.order)
        return text + self.limit

    def lists(self):
        return [
            ("ctes", self.ctes), ("items", self.items), ("sources", self.sources), ("where", self.where),
            ("groups", self.groups), ("having", self.having), ("order", self.order),
        ]


@dataclasses.dataclass
class SetOperation:
    parts: list
    operators: list
    order: list
    limit: str = ""

    def sql(self):
        text = f"({self.parts[0].sql()})"
        for operator, part in zip(self.operators, self.parts[1:]):
            text += f" {operator} ({part.sql()})"
        if self.order:
            text += " ORDER BY " + ", ".join(order.sql() for order in self.order)
        return text + self.limit

    def lists(self):
        return [("parts", self.parts), ("order", self.order)]


# Lists that may lose a member, and the least number that stays.
OPTIONAL = {"where": 0, "having": 0, "groups": 0, "on": 1, "items": 1, "sources": 1, "assignments": 1, "updates": 0, "records": 1}
# Kinds for which 1 is a value as any other.
NUMERIC = ("integer", "decimal", "double", "truth")


def walk(node):
    """All lists of children under a node, with their owners, parents first."""
    for name, children in node.lists():
        yield node, name, children
        for child in children:
            yield from walk(child)


def parts_of(node, kind):
    """Expressions of a kind inside of an expression, not those of its subqueries."""
    found = []
    for argument in getattr(node, "arguments", []):
        if isinstance(argument, Expression):
            if kind in (argument.kind, "any"):
                found.append(argument)
            found.extend(parts_of(argument, kind))
    return found


def cuts(root):
    """Changes that make a tree smaller, as functions on a copy of it."""
    for place, (owner, name, children) in enumerate(walk(root)):
        if name == "ctes":
            for at in range(len(children)):
                yield place, lambda owner, children, at=at: (owner.names.pop(at), children.pop(at))
            continue
        for at, child in enumerate(children):
            if name in OPTIONAL and len(children) > OPTIONAL[name]:
                yield place, lambda owner, children, at=at: without(owner, children, at)
            if name == "order":
                continue
            if isinstance(child, SetOperation):
                for number in range(len(child.parts)):
                    yield place, lambda owner, children, at=at, number=number: children.__setitem__(
                        at, children[at].parts[number])
            if isinstance(child, Expression) and name != "what":
                for number in range(len(parts_of(child, child.kind))):
                    yield place, lambda owner, children, at=at, number=number: children.__setitem__(
                        at, parts_of(children[at], children[at].kind)[number])
                if child.arguments:
                    for constant in ("NULL", "1")[: 2 if child.kind in NUMERIC and name != "items" else 1]:
                        yield place, lambda owner, children, at=at, constant=constant: children.__setitem__(
                            at, Expression(children[at].kind, constant))
    for place, (owner, name, _) in enumerate(walk(root)):
        if isinstance(owner, Select) and name == "ctes":
            for flag in ("distinct", "rollup"):
                if getattr(owner, flag):
                    yield place, lambda owner, children, flag=flag: setattr(owner, flag, False)
        if name == "order" and children:
            yield place, lambda owner, children: unordered(owner)


def unordered(owner):
    """Without its order, and so without its limit: which rows a limit leaves would be anyone's guess."""
    owner.order.clear()
    owner.limit = ""


def without(owner, children, at):
    """Without one member of a list. The order stays one of all columns."""
    children.pop(at)
    if isinstance(owner, Select) and children is owner.items and owner.order:
        owner.order[:] = [Expression("order", str(place + 1)) for place in range(len(children))]


def changed(root, place, change):
    """A copy of the tree with one change."""
    root = copy.deepcopy(root)
    for number, (owner, _, children) in enumerate(walk(root)):
        if number == place:
            change(owner, children)
            return root
    raise IndexError(place)


def smallest(root, differs, tries=400):
    """Cuts a tree as long as `differs` holds for what is left."""
    again = True
    while again:
        again = False
        if isinstance(root, SetOperation):
            candidates = [copy.deepcopy(part) for part in root.parts]
        else:
            candidates = []
        for candidate in candidates:
            if differs(candidate):
                root, again = candidate, True
                break
        if again:
            continue
        for place, change in list(cuts(root)):
            tries -= 1
            if tries < 0:
                return root
            candidate = changed(root, place, change)
            if len(candidate.sql()) < len(root.sql()) and differs(candidate):
                root, again = candidate, True
                break
    return root
