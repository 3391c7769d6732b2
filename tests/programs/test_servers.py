"""Servers under load on the preloaded allocator; the same frame as test_programs.py.

Loopback only, on ports that were free a moment ago; the stage stops every server and reads its log.
"""

import os
import pwd
import signal

import pytest
from stage import find, free_port, wait_until

programs = pytest.mark.programs

# Whom a server runs as that refuses to be root.
SERVANT = "nobody"


def servant():
    return SERVANT if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name


@programs("redis-server", "redis-benchmark", "redis-cli")
def test_redis_under_its_benchmark(stage):
    """40,000 requests per command, BGSAVE amid writes, async flush, restart, equal digest."""
    port = free_port()
    command = ("redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--dir",
               stage.folder, "--enable-debug-command", "local")

    def redis(*words):
        return stage.run("redis-cli", "-e", "-p", port, *words).strip()

    stage.serve(*command, port=port)
    for n in range(5):
        redis("debug", "populate", 4000, f"group{n}", 50 + 200 * n)
    for _ in range(2):
        assert "started" in redis("bgsave")
        stage.run("redis-benchmark", "-p", port, "-q", "-n", 40000, "-c", 30, "-r", 10000, "-d",
                  300, "-t", "set,get,incr,lpush,lpop,sadd,hset,zadd")
        wait_until(lambda: "rdb_bgsave_in_progress:0" in redis("info", "persistence"), "bgsave")
        assert "rdb_last_bgsave_status:ok" in redis("info", "persistence")
    size, digest = int(redis("dbsize")), redis("debug", "digest")
    assert size > 30000 and len(digest) == 40
    assert redis("save") == "OK" and redis("flushall", "async") == "OK" and redis("dbsize") == "0"
    stage.stop_servers()
    stage.serve(*command, port=port)
    wait_until(lambda: "\nloading:0" in redis("info", "persistence"), "redis loads its data")
    assert (int(redis("dbsize")), redis("debug", "digest")) == (size, digest)


@programs("postgres", "pgbench", "initdb", "psql")
def test_postgres_under_pgbench(stage):
    """initdb, 4 pgbench clients for 5 s, sums that must agree, parallel query, index check."""
    port, user = free_port(), servant()
    home = stage.folder_of(user)
    data, env = home / "data", {"HOME": str(home), "TMPDIR": str(home)}
    stage.run("initdb", "-D", data, "-U", "u", "-A", "trust", "--no-sync", user=user, env=env,
              cwd=home)
    stage.serve(find("postgres"), "-D", data, "-p", port, "-k", home, "-c",
                "listen_addresses=127.0.0.1", "-c", "fsync=off", port=port, user=user,
                stop=signal.SIGINT)
    where = ("-h", "127.0.0.1", "-p", port, "-U", "u")

    def psql(query):
        return stage.run("psql", *where, "-d", "postgres", "-Atqc", query).strip()

    ready = ("pg_isready", *where, "-d", "postgres")
    wait_until(lambda: "accepting" in stage.run(*ready, status=None), "postgres")
    stage.run("pgbench", *where, "-i", "-q", "-s", 3, "postgres")
    output = stage.run("pgbench", *where, "-c", 4, "-j", 2, "-T", 5, "postgres")
    assert "number of failed transactions: 0" in output
    sums = psql("select (select sum(abalance) from pgbench_accounts), (select sum(bbalance) from "
                "pgbench_branches), (select sum(tbalance) from pgbench_tellers), "
                "(select sum(delta) from pgbench_history)").split("|")
    assert len(set(sums)) == 1, sums
    assert psql("set parallel_setup_cost=0; set min_parallel_table_scan_size=0; select count(*), "
                "count(distinct md5(aid::text)) from pgbench_accounts") == "300000|300000"
    psql("create extension amcheck")
    psql("select bt_index_check('pgbench_accounts_pkey', true)")


@programs("nginx", "ab", "curl")
def test_nginx_under_load(stage):
    """ab with 30 connections against two workers, gzip on; curl reads every byte back."""
    port = free_port()
    text = "".join(f"line {n} of a page\n" for n in range(20000))
    (stage.folder / "page.txt").write_text(text)
    stage.folder.joinpath("nginx.conf").write_text(
        f"daemon off; worker_processes 2; pid {stage.folder}/pid; error_log stderr;"
        f"user {'root' if os.geteuid() == 0 else servant()};"
        "events { worker_connections 256; } http { access_log off; types { text/plain txt; }"
        "gzip on; gzip_types text/plain;"
        + "".join(f"{kind}_temp_path {stage.folder}/{kind};" for kind in
                  ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        + f"server {{ listen 127.0.0.1:{port}; root {stage.folder};"
        f"location /far/ {{ proxy_pass http://127.0.0.1:{port}/; }} }} }}")
    stage.serve("nginx", "-e", "stderr", "-c", stage.folder / "nginx.conf", port=port)
    address = f"http://127.0.0.1:{port}"
    for path, count in (("/page.txt", 4000), ("/far/page.txt", 1000)):
        output = stage.run("ab", "-q", "-k", "-H", "Accept-Encoding: gzip", "-n", count, "-c", 30,
                           address + path)
        assert "Failed requests:        0" in output and "Non-2xx" not in output
        assert f"Complete requests:      {count}" in output
        assert stage.run("curl", "-sS", "--compressed", "--fail", address + path) == text
    urls = [word for n in range(200) for word in ("-o", f"got{n % 4}", f"{address}/page.txt?{n}")]
    stage.run("curl", "-sS", "--fail", "--parallel", *urls)
    assert all((stage.folder / f"got{n}").read_text() == text for n in range(4))


MEMCACHED_CLIENT = """
import random, socket, sys, threading
def client(seed):
    draw = random.Random(seed)
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as link:
        wire = link.makefile("rwb")
        for n in range(4000):
            key = f"k{seed}-{draw.randrange(500)}"
            value = bytes([65 + n % 26]) * draw.randrange(9000)
            wire.write(f"set {key} 0 0 {len(value)}\\r\\n".encode() + value + b"\\r\\n")
            wire.flush()
            assert wire.readline() == b"STORED\\r\\n"
            wire.write(f"get {key}\\r\\n".encode()); wire.flush()
            assert wire.readline().split()[-1] == str(len(value)).encode()
            assert wire.read(len(value) + 7) == value + b"\\r\\nEND\\r\\n"
            right[seed] += 1
right = [0] * 6
threads = [threading.Thread(target=client, args=(seed,)) for seed in range(6)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(sum(right))
"""


@programs("memcached", "python3")
def test_memcached_keeps_what_it_is_given(stage):
    """Six python clients set and read back 24,000 values of up to 9 kB."""
    port = free_port()
    user = ("-u", "root") if os.geteuid() == 0 else ()
    stage.serve("memcached", *user, "-l", "127.0.0.1", "-p", port, "-U", 0, "-m", 64, "-t", 4,
                port=port)
    assert stage.run("python3", "-c", MEMCACHED_CLIENT, port) == "24000\n"
