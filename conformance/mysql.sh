# Sourced by the scripts beside it, behind server.sh: a MySQL to compare with.
#
#   install_mysql       unpacks Debian unstable's mysql-server-core beside the system, with the loader and the
#                       libraries that it wants; nothing of the system changes. 77 where it cannot be had.
#   start_mysql         starts it over a temporary directory; sets mysql_server (its process id) and mysql_port.
#                       MYSQL_PORT names one that runs already: user root without a password.
mysql_server=
mysql_port=${MYSQL_PORT:-}
mysql_root=$built/mysql

install_mysql() {
    [ -x "$mysql_root/usr/sbin/mysqld" ] && return 0
    have apt-get && have dpkg || return 77
    local mirror keyring apt=$built/mysql-apt package
    keyring=$(ls /usr/share/keyrings/debian-archive-keyring.{gpg,pgp} 2>/dev/null | head -1)
    # The mirror of the system's own configuration, in either of its two formats.
    mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
        grep -oE '^(URIs: *|deb .*)https?://[^ ]+/debian/?( |$)' | grep -oE 'https?://[^ ]+' | head -1)
    [ -n "$mirror" ] && [ -n "$keyring" ] || return 77
    mkdir -p "$apt"/{state/lists/partial,cache/archives/partial,etc/sources.list.d,etc/apt.conf.d,etc/preferences.d,log}
    : >"$apt/state/status"
    echo "deb [signed-by=$keyring] $mirror unstable main" >"$apt/etc/sources.list"
    cat >"$apt/apt.conf" <<CONFIGURATION
Dir::State "$apt/state"; Dir::State::status "$apt/state/status"; Dir::State::lists "$apt/state/lists";
Dir::Cache "$apt/cache"; Dir::Cache::archives "$apt/cache/archives"; Dir::Log "$apt/log"; Dir::Etc "$apt/etc";
Dir::Etc::sourcelist "$apt/etc/sources.list"; Dir::Etc::sourceparts "$apt/etc/sources.list.d"; Dir::Etc::parts "$apt/etc/apt.conf.d";
Acquire::Check-Valid-Until "false"; Acquire::Languages "none"; APT::Sandbox::User "$(id -un)"; APT::Install-Recommends "false";
APT::Keep-Downloaded-Packages "true"; Debug::NoLocking "true";
CONFIGURATION
    {
        APT_CONFIG=$apt/apt.conf apt-get update -qq &&
            APT_CONFIG=$apt/apt.conf apt-get install -y -qq --download-only --no-install-recommends mysql-server-core
    } >"$work/mysql-install.log" 2>&1 || return 77
    # Whole or not at all: an installation that was cut off is not taken for one.
    rm -rf "$mysql_root.part"
    mkdir -p "$mysql_root.part"
    for package in "$apt"/cache/archives/*.deb; do
        dpkg -x "$package" "$mysql_root.part" || return 77
    done
    mv "$mysql_root.part" "$mysql_root"
    rm -rf "$apt"
}

start_mysql() {
    [ -z "$mysql_port" ] || return 0
    install_mysql || return 77
    local root=$mysql_root loader libraries command
    libraries=$(find "$root/usr/lib" -maxdepth 1 -type d -name '*-linux-gnu*' | paste -sd:)
    loader=$(find "$root/usr/lib64" "$root/usr/lib" -maxdepth 2 -name 'ld-linux-*' 2>/dev/null | head -1)
    [ -n "$loader" ] || return 77
    command=("$loader" --library-path "$libraries:$root/usr/lib/mysql/private:$root/usr/lib/mysql" "$root/usr/sbin/mysqld" --no-defaults
        --user="$(id -un)" --basedir="$root/usr" --datadir="$work/mysql" --plugin-dir="$root/usr/lib/mysql/plugin"
        --lc-messages-dir="$root/usr/share/mysql" --character-sets-dir="$root/usr/share/mysql/charsets")
    "${command[@]}" --initialize-insecure >"$work/mysql.log" 2>&1 || return 77
    echo "CREATE USER root@'127.0.0.1'; GRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;" >"$work/mysql-init.sql"
    mysql_port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    "${command[@]}" --socket="$work/mysql.sock" --port="$mysql_port" --bind-address=127.0.0.1 \
        --init-file="$work/mysql-init.sql" --mysqlx=OFF --skip-log-bin \
        --pid-file="$work/mysql.pid" --skip-name-resolve --local-infile=1 --secure-file-priv= --innodb-buffer-pool-size=64M \
        --innodb-flush-log-at-trx-commit=0 >"$work/mysql.log" 2>&1 &
    mysql_server=$!
    for _ in $(seq 300); do
        (exec 3<>"/dev/tcp/127.0.0.1/$mysql_port") 2>/dev/null && return 0
        kill -0 "$mysql_server" 2>/dev/null || break
        sleep 0.2
    done
    mysql_port=
    cat "$work/mysql.log" >&2
    return 1
}
