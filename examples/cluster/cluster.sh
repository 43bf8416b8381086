#!/bin/sh
# Three cores on one PostgreSQL database, with a balancer before them. An agent's stream is served by one of them; what another
# one is told reaches it; the one that serves it is killed, and nothing is lost.
#
#   examples/cluster/cluster.sh                      # makes a database of its own, and removes it in the end
#   DATABASE=postgres://rouse@db.example.com/try examples/cluster/cluster.sh    # an empty one, in which tables are left
#                                                    # (and ROUSE_SECRET, the same each time, to use it again)
#   PORT=9000 examples/cluster/cluster.sh            # listens on 9000 to 9004 instead of 8787 to 8791
#
# It takes Go, curl, and PostgreSQL's programs (Debian: apt-get install postgresql) unless DATABASE names a database.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
port=${PORT:-8787}
work=$(mktemp -d /tmp/rouse-cluster.XXXXXX)
processes=
name= # of the app

say() { printf '\n== %s\n' "$*"; }

finish() {
    status=$?
    trap - EXIT INT TERM
    if [ -n "$name" ] && [ ! -d "$work/postgres" ]; then
        for node in 1 2 3; do
            ! "$work/rouse" app delete "$name" --data "$work/node$node" >/dev/null 2>&1 || break
        done
    fi
    for process in $processes; do
        kill "$process" 2>/dev/null || true
    done
    wait
    [ ! -d "$work/postgres" ] || in_postgres "$programs/pg_ctl" --pgdata "$work/postgres/data" --mode fast --silent stop || true
    if [ "$status" != 0 ]; then
        tail -n 20 "$work"/*.log >&2 || true
    fi
    rm -rf "$work"
    exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# in_postgres runs one of PostgreSQL's programs, which refuse to be run by root.
in_postgres() {
    if [ "$(id -u)" = 0 ]; then
        (cd "$work/postgres" && setpriv --reuid postgres --regid postgres --clear-groups "$@")
    else
        (cd "$work/postgres" && "$@")
    fi
}

# until_so runs a command until it succeeds, for half a minute at most.
until_so() {
    tries=0
    until "$@"; do
        tries=$((tries + 1))
        [ "$tries" -lt 150 ] || { echo "gave up waiting for: $*" >&2; exit 1; }
        sleep 0.2
    done
}

start_database() {
    initdb=$(command -v initdb || ls -d /usr/lib/postgresql/*/bin/initdb 2>/dev/null | tail -n 1)
    [ -n "$initdb" ] || { echo "There is no PostgreSQL here: install it, or name a database: DATABASE=postgres://…" >&2; exit 1; }
    programs=$(dirname "$initdb")
    mkdir "$work/postgres"
    chmod 755 "$work"
    [ "$(id -u)" != 0 ] || chown postgres "$work/postgres"
    in_postgres "$initdb" --pgdata "$work/postgres/data" --username rouse --auth trust --encoding UTF8 --locale C >/dev/null
    in_postgres "$programs/pg_ctl" --pgdata "$work/postgres/data" --silent --wait --log "$work/postgres/log" \
        --options "-k $work/postgres -c listen_addresses= -c unix_socket_permissions=0777" start
    DATABASE="postgres://rouse@/postgres?host=$work/postgres"
}

# start_node starts the node with that number, and waits until it can serve.
start_node() {
    ROUSE_DATABASE=$DATABASE ROUSE_SECRET=$secret "$work/rouse" serve --data "$work/node$1" --listen "127.0.0.1:$((port + $1))" \
        --public-url "$url" >>"$work/node$1.log" 2>&1 &
    eval "node$1=$!"
    processes="$processes $!"
    until_so curl -sf -o "$work/ready" "http://127.0.0.1:$((port + $1))/readyz"
}

# streams is how many streams a node serves.
streams() {
    curl -sf --unix-socket "$work/node$1/admin.sock" http://rouse/metrics | sed -n 's/^rouse_streams_open[^ ]* //p'
}

# find_stream sets serving to the node that serves the stream, another to one that does not.
find_stream() {
    serving=
    another=
    for node in $running; do
        if [ "$(streams "$node")" = 1 ]; then serving=$node; else another=$node; fi
    done
    [ -n "$serving" ] && [ -n "$another" ]
}

# emit says on a node that the crawl got on, and waits until the agent's command has printed it.
emit() {
    "$work/rouse" emit crawl.finished --app "$name" --data "$work/node$1" --args '{"job":"j1"}' --payload "{\"pages\":$2}" \
        --id "crawl-$2" --text "Crawl j1: $2 pages" >/dev/null
    until_so grep -q "Crawl j1: $2 pages" "$work/stream"
    grep "Crawl j1: $2 pages" "$work/stream" | tail -n 1
}

say "Building"
(cd "$here/../.." && go build -o "$work/" ./cmd/rouse ./examples/cluster ./examples/crawler)

if [ -z "${DATABASE:-}" ]; then
    say "Starting PostgreSQL in $work"
    start_database
fi

url="http://127.0.0.1:$port"
say "Starting three nodes, and a balancer at $url"
secret=${ROUSE_SECRET:-$(od -An -vtx1 -N32 /dev/urandom | tr -d ' \n')} # every node needs the same one
mkdir -m 700 "$work/node1" "$work/node2" "$work/node3"
"$work/cluster" --listen "127.0.0.1:$port" "127.0.0.1:$((port + 1))" "127.0.0.1:$((port + 2))" "127.0.0.1:$((port + 3))" >"$work/balancer.log" 2>&1 &
processes="$processes $!"
for node in 1 2 3; do start_node "$node"; done
running="1 2 3"

say "Making an app on node 1 and its key on node 2, and starting the app"
name=crawler-$$ # others may be there already in a database that is kept
"$work/rouse" app create "$name" --data "$work/node1" >/dev/null 2>&1
key=$("$work/rouse" key create --app "$name" --data "$work/node2" 2>/dev/null)
WAKESHIFT_CORE=$url WAKESHIFT_KEY=$key "$work/crawler" --http "127.0.0.1:$((port + 4))" >"$work/crawler.log" 2>&1 &
processes="$processes $!"
until_so curl -s -o "$work/ready" "http://127.0.0.1:$((port + 4))/mcp"

say "An agent calls the app's tool, and runs the command that is in the answer"
curl -sf -A claude-code/2.1 -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \
    -d '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"watch_crawl","arguments":{"job":"j1"}}}' \
    "http://127.0.0.1:$((port + 4))/mcp" >"$work/answer"
# The command is JSON within a line: quotes in it are escaped.
sed -n "s/.*\(u='http[^ ]*; until .*; done\).*/\1/p" "$work/answer" | sed 's/\\"/"/g; s/\\u0026/\&/g' >"$work/command"
cat "$work/command"
sh "$work/command" >"$work/stream" 2>>"$work/command.log" &
processes="$processes $!"
until_so find_stream

say "The stream is served by node $serving; an event is emitted on node $another"
emit "$another" 12

say "Node $serving is killed; an event is emitted on node $another before the stream has come back"
eval "kill -9 \$node$serving"
killed=$serving
running=$(echo "1 2 3" | tr -d "$killed")
emit "$another" 40

find_stream
say "The stream is served by node $serving now; node $killed is started again and told of an event"
start_node "$killed"
emit "$killed" 95

say "What the agent was sent in all; a line that had been out for less than two seconds came twice, with the same id"
cat "$work/stream"
