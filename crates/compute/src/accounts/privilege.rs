//! The privileges.

/// A privilege with a bit in [`PrivilegeSet`]; dynamic privileges are identified by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Privilege {
    /// As `GRANT` says it.
    pub name: &'static str,
    bit: u8,
    levels: u8,
}

const GLOBAL: u8 = 1;
const SCHEMA: u8 = 2;
const TABLE: u8 = 4;
const COLUMN: u8 = 8;
const EVERYWHERE: u8 = GLOBAL | SCHEMA | TABLE;

macro_rules! privileges {
    ($($name:ident $bit:literal $text:literal $levels:expr;)*) => {
        impl Privilege {
            $(#[doc = concat!("`", $text, "`")]
            pub const $name: Privilege = Privilege { name: $text, bit: $bit, levels: $levels };)*

            /// All of them, in the order in which MySQL lists them.
            pub const ALL: &'static [Privilege] = &[$(Privilege::$name),*];
        }
    };
}

privileges! {
    SELECT 0 "SELECT" EVERYWHERE | COLUMN;
    INSERT 1 "INSERT" EVERYWHERE | COLUMN;
    UPDATE 2 "UPDATE" EVERYWHERE | COLUMN;
    DELETE 3 "DELETE" EVERYWHERE;
    CREATE 4 "CREATE" EVERYWHERE;
    DROP 5 "DROP" EVERYWHERE;
    RELOAD 6 "RELOAD" GLOBAL;
    SHUTDOWN 7 "SHUTDOWN" GLOBAL;
    PROCESS 8 "PROCESS" GLOBAL;
    FILE 9 "FILE" GLOBAL;
    REFERENCES 10 "REFERENCES" EVERYWHERE | COLUMN;
    INDEX 11 "INDEX" EVERYWHERE;
    ALTER 12 "ALTER" EVERYWHERE;
    SHOW_DATABASES 13 "SHOW DATABASES" GLOBAL;
    SUPER 14 "SUPER" GLOBAL;
    CREATE_TEMPORARY_TABLES 15 "CREATE TEMPORARY TABLES" GLOBAL | SCHEMA;
    LOCK_TABLES 16 "LOCK TABLES" GLOBAL | SCHEMA;
    EXECUTE 17 "EXECUTE" GLOBAL | SCHEMA;
    REPLICATION_SLAVE 18 "REPLICATION SLAVE" GLOBAL;
    REPLICATION_CLIENT 19 "REPLICATION CLIENT" GLOBAL;
    CREATE_VIEW 20 "CREATE VIEW" EVERYWHERE;
    SHOW_VIEW 21 "SHOW VIEW" EVERYWHERE;
    CREATE_ROUTINE 22 "CREATE ROUTINE" GLOBAL | SCHEMA;
    ALTER_ROUTINE 23 "ALTER ROUTINE" GLOBAL | SCHEMA;
    CREATE_USER 24 "CREATE USER" GLOBAL;
    EVENT 25 "EVENT" GLOBAL | SCHEMA;
    TRIGGER 26 "TRIGGER" EVERYWHERE;
    CREATE_TABLESPACE 27 "CREATE TABLESPACE" GLOBAL;
    CREATE_ROLE 28 "CREATE ROLE" GLOBAL;
    DROP_ROLE 29 "DROP ROLE" GLOBAL;
    GRANT_OPTION 30 "GRANT OPTION" EVERYWHERE;
}

/// The dynamic privileges: global ones without a bit.
pub(super) const DYNAMIC: &[&str] = &[
    "ALLOW_NONEXISTENT_DEFINER",
    "APPLICATION_PASSWORD_ADMIN",
    "AUDIT_ABORT_EXEMPT",
    "AUDIT_ADMIN",
    "AUTHENTICATION_POLICY_ADMIN",
    "BACKUP_ADMIN",
    "BINLOG_ADMIN",
    "BINLOG_ENCRYPTION_ADMIN",
    "CLONE_ADMIN",
    "CONNECTION_ADMIN",
    "ENCRYPTION_KEY_ADMIN",
    "FIREWALL_EXEMPT",
    "FLUSH_OPTIMIZER_COSTS",
    "FLUSH_PRIVILEGES",
    "FLUSH_STATUS",
    "FLUSH_TABLES",
    "FLUSH_USER_RESOURCES",
    "GROUP_REPLICATION_ADMIN",
    "GROUP_REPLICATION_STREAM",
    "INNODB_REDO_LOG_ARCHIVE",
    "INNODB_REDO_LOG_ENABLE",
    "OPTIMIZE_LOCAL_TABLE",
    "PASSWORDLESS_USER_ADMIN",
    "PERSIST_RO_VARIABLES_ADMIN",
    "REPLICATION_APPLIER",
    "REPLICATION_SLAVE_ADMIN",
    "RESOURCE_GROUP_ADMIN",
    "RESOURCE_GROUP_USER",
    "ROLE_ADMIN",
    "SENSITIVE_VARIABLES_OBSERVER",
    "SERVICE_CONNECTION_ADMIN",
    "SESSION_VARIABLES_ADMIN",
    "SET_ANY_DEFINER",
    "SET_USER_ID",
    "SHOW_ROUTINE",
    "SYSTEM_USER",
    "SYSTEM_VARIABLES_ADMIN",
    "TABLE_ENCRYPTION_ADMIN",
    "TELEMETRY_LOG_ADMIN",
    "TRANSACTION_GTID_TAG",
    "XA_RECOVER_ADMIN",
];

impl Privilege {
    /// The privilege with that name, in upper case.
    #[must_use]
    pub fn named(name: &str) -> Option<Privilege> {
        Privilege::ALL.iter().copied().find(|privilege| privilege.name == name)
    }

    pub(super) fn holds_on_schemas(self) -> bool {
        self.levels & SCHEMA != 0
    }

    pub(super) fn holds_on_tables(self) -> bool {
        self.levels & TABLE != 0
    }

    pub(super) fn holds_on_columns(self) -> bool {
        self.levels & COLUMN != 0
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PrivilegeSet(pub(super) u64);

impl PrivilegeSet {
    pub const NONE: PrivilegeSet = PrivilegeSet(0);

    /// Those of `filter`, without `GRANT OPTION`: the meaning of `ALL PRIVILEGES` at a level.
    pub(super) fn all(filter: impl Fn(Privilege) -> bool) -> PrivilegeSet {
        let chosen = Privilege::ALL.iter().copied().filter(|privilege| filter(*privilege));
        let chosen = chosen.filter(|privilege| *privilege != Privilege::GRANT_OPTION);
        chosen.fold(PrivilegeSet::NONE, PrivilegeSet::with)
    }

    /// The set with one more privilege.
    #[must_use]
    pub fn with(self, privilege: Privilege) -> PrivilegeSet {
        PrivilegeSet(self.0 | 1 << privilege.bit)
    }

    /// Whether the privilege is in the set.
    #[must_use]
    #[inline]
    pub fn contains(self, privilege: Privilege) -> bool {
        self.0 & 1 << privilege.bit != 0
    }

    /// The privileges that are in both sets.
    pub(super) fn intersection(self, other: PrivilegeSet) -> PrivilegeSet {
        PrivilegeSet(self.0 & other.0)
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The privileges in either set.
    #[must_use]
    pub fn union(self, other: PrivilegeSet) -> PrivilegeSet {
        PrivilegeSet(self.0 | other.0)
    }

    pub(super) fn without(self, other: PrivilegeSet) -> PrivilegeSet {
        PrivilegeSet(self.0 & !other.0)
    }

    /// Whether all privileges of the other set are in this one.
    #[must_use]
    pub fn includes(self, other: PrivilegeSet) -> bool {
        other.0 & !self.0 == 0
    }

    /// The privileges, in MySQL's order.
    pub fn iter(self) -> impl Iterator<Item = Privilege> {
        Privilege::ALL.iter().copied().filter(move |privilege| self.contains(*privilege))
    }
}
