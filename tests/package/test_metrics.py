"""Statistics as metrics: what they say, what the dashboard asks for, what Prometheus reads."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request

import pytest
from files import ROOT, clean_environment

sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests")]
pytest.importorskip("prometheus_client")
import made_files  # noqa: E402
from hakmem import metrics  # noqa: E402
from prometheus_client.openmetrics import parser  # noqa: E402

DASHBOARD = ROOT / "examples/grafana/hakmem.json"
PATIENCE_S = 60


def samples(text):
    """(name, labels that are not of the process) to the value."""
    return {(each.name, *(value for label, value in sorted(each.labels.items())
                          if label not in metrics.LABELS)): each
            for family in parser.text_string_to_metric_families(text) for each in family.samples}


@pytest.fixture
def told(hakmem, tmp_path):
    """What `hakmem stat --prometheus` says of a file, read as OpenMetrics."""
    def tell(**changes):
        (tmp_path / "file").write_bytes(made_files.statistics(**changes))
        done = hakmem("stat", "--prometheus", "file")
        assert done.returncode == 0, done.stderr
        return samples(done.stdout)

    return tell


def test_each_figure_of_the_statistics_is_a_metric(told):
    found = told(statistics={name: 1000 + number for number, name in
                             enumerate(made_files.COUNTS)})
    values = {each.value for each in found.values()}
    for number, name in enumerate(made_files.COUNTS):
        assert 1000 + number in values or name == "purge_us", name
    assert found["hakmem_purge_seconds_total",].value == pytest.approx(1015 / 1e6)


def test_blocks_and_calls_have_labels(told):
    found = told()
    assert found["hakmem_blocks", "64"].value == 3
    assert found["hakmem_blocks", "large"].value == 1
    assert found["hakmem_system_calls_total", "mmap"].value == 1
    assert found["hakmem_system_call_bytes_total", "mmap"].value == 4096
    assert found["hakmem_system_call_seconds_total", "mmap"].value == pytest.approx(1e-6)
    assert found["hakmem_used_bytes",].labels == {"program": "made up", "process": "7"}


def test_the_age_is_that_of_the_file(told):
    now = time.time()
    found = told(written_ms=int((now - 1000) * 1000))
    assert 1000 <= found["hakmem_statistics_age_seconds",].value <= 1000 + time.time() - now + 0.01
    assert found["hakmem_statistics_written_timestamp_seconds",].value == pytest.approx(now - 1000)


def test_a_name_stays_a_label(told):
    found = told(program='a"b\n\\c{x="y"} 7')
    assert found["hakmem_used_bytes",].labels["program"] == 'a"b\\n\\c{x="y"} 7'


def test_without_a_file_there_is_an_error_and_no_metric(hakmem):
    done = hakmem("stat", "--prometheus", "nonesuch")
    assert (done.returncode, done.stdout) == (1, "") and "nonesuch" in done.stderr


def test_each_query_of_the_dashboard_names_metrics_that_are_told(told, monkeypatch):
    names = {name for name, *_ in told()}
    dashboard = json.loads(DASHBOARD.read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    queries += [each["query"]["query"] for each in dashboard["templating"]["list"]
                if each["type"] == "query"]
    asked = {name for query in queries for name in re.findall(r"\bhakmem_\w+", query)}
    kernel = {"hakmem_process_resident_bytes"}  # of a running process: see the test of Prometheus
    assert len(asked) >= 15 and asked - kernel <= names
    assert all(re.search(r"\bhakmem_\w+", query) for query in queries)
    variables = {each["name"] for each in dashboard["templating"]["list"]}
    assert {name for query in queries for name in re.findall(r"\$(\w+)", query)} <= variables


# ---- a server ----

def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def got(address):
    """What is answered, or "" while nobody does."""
    try:
        with urllib.request.urlopen(address, timeout=10) as answer:
            return answer.read().decode()
    except OSError:
        return ""


def until(question):
    """The answer once there is one."""
    end = time.monotonic() + PATIENCE_S
    while not (answer := question()):
        assert time.monotonic() < end, "no answer"
        time.sleep(0.1)
    return answer


class Started:
    """Processes that end with the test."""

    def __init__(self):
        self.processes = []

    def __call__(self, *words, **more):
        self.processes.append(subprocess.Popen([str(word) for word in words],
                                               stdout=subprocess.DEVNULL, **more))
        return self.processes[-1]

    def end(self):
        for each in reversed(self.processes):
            each.kill()
            each.communicate()


@pytest.fixture
def start():
    started = Started()
    yield started
    started.end()


@pytest.fixture
def serve(start, library, tmp_path):
    """`hakmem top --serve` of a process or file: (its process, its address)."""
    def begin(what):
        port = free_port()
        process = start(sys.executable, "-B", "-m", "hakmem.command", "top", "--serve", port, what,
                        cwd=tmp_path, stderr=subprocess.DEVNULL, env=clean_environment(
                            LIBHAKMEM=library, PYTHONPATH=os.pathsep.join(
                                [str(ROOT / "python"), os.environ.get("PYTHONPATH", "")])))
        address = f"127.0.0.1:{port}"
        until(lambda: got(f"http://{address}/metrics"))
        return process, address

    return begin


def test_the_exporter_reads_the_file_at_each_scrape(serve, tmp_path):
    (tmp_path / "file").write_bytes(made_files.statistics())
    process, address = serve("file")
    assert "hakmem_up 1.0" in got(f"http://{address}/metrics")
    (tmp_path / "file").write_bytes(made_files.statistics(thread_caches=4321))
    assert " 4321.0" in got(f"http://{address}/metrics")
    (tmp_path / "file").unlink()
    text = got(f"http://{address}/metrics")
    assert "hakmem_up 0.0" in text and "hakmem_used_bytes" not in text
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE_S) == 0


def test_the_exporter_waits_for_a_file(serve, tmp_path):
    _, address = serve("file")
    assert "hakmem_up 0.0" in got(f"http://{address}/metrics")
    (tmp_path / "file").write_bytes(made_files.statistics())
    assert "hakmem_up 1.0" in got(f"http://{address}/metrics")


def test_the_exporter_ends_where_there_is_no_process(hakmem):
    done = hakmem("top", "--serve", str(free_port()), str(1 << 30))
    assert done.returncode == 0 and "there is no process" in done.stderr


def test_the_exporter_is_on_loopback_alone(serve, tmp_path):
    (tmp_path / "file").write_bytes(made_files.statistics())
    _, address = serve("file")
    port = int(address.split(":")[1])
    listening = [line.split()[1] for line in open("/proc/net/tcp", encoding="utf-8")
                 if line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A"]
    assert listening == [f"0100007F:{port:04X}"]


def test_a_port_that_is_taken_is_told(hakmem, tmp_path):
    (tmp_path / "file").write_bytes(made_files.statistics())
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = hakmem("top", "--serve", str(taken.getsockname()[1]), "file")
    assert done.returncode == 1 and "in use" in done.stderr and "Traceback" not in done.stderr


@pytest.fixture(scope="session")
def prometheus(tmp_path_factory):
    """Prometheus itself: the machine's, or what is in the distribution's package."""
    if found := shutil.which("prometheus"):
        return found
    place = tmp_path_factory.mktemp("prometheus")
    done = subprocess.run([ROOT / "tools/apt_unpack.sh", "prometheus", place], text=True,
                          capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"no Prometheus, and no package of it: {done.stderr.strip()[-200:]}")
    return place / "usr/bin/prometheus"


def is_loaded(port):
    """Puts more into redis, so that calls miss the hit path. False: it does not answer yet."""
    start = time.monotonic_ns()
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as redis:
            redis.sendall(b"".join(b"SET key%d %s\r\n" % (start + number, b"x" * (1 + number % 500))
                                   for number in range(2000)) + b"QUIT\r\n")
            while redis.recv(1 << 16):
                pass
        return True
    except OSError:
        return False


def test_prometheus_reads_the_figures_of_a_preloaded_redis(prometheus, start, serve, library,
                                                           tmp_path):
    if not shutil.which("redis-server"):
        pytest.skip("no redis-server")
    port = free_port()
    redis = start("redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", cwd=tmp_path,
                  env=clean_environment(LD_PRELOAD=library, HAKMEM_STATS=tmp_path / "%p.json"))
    exporter, address = serve(redis.pid)
    (tmp_path / "prometheus.yml").write_text(json.dumps({
        "global": {"scrape_interval": "1s"},
        "scrape_configs": [{"job_name": "redis", "static_configs": [{"targets": [address]}]}]}))
    reader = f"http://127.0.0.1:{free_port()}"
    start(prometheus, f"--config.file={tmp_path}/prometheus.yml",
          f"--storage.tsdb.path={tmp_path}/data", f"--web.listen-address={reader[7:]}",
          stderr=subprocess.DEVNULL)

    def asked(query):
        answer = got(f"{reader}/api/v1/query?query={urllib.parse.quote(query)}")
        return json.loads(answer)["data"]["result"] if answer else []

    until(lambda: is_loaded(port) and asked('hakmem_used_bytes{job="redis"} > 100000'))
    found = {each["metric"]["__name__"]: each for each in
             asked(f'{{job="redis", process="{redis.pid}"}}')}
    kinds = json.loads(got(f"{reader}/api/v1/metadata"))["data"]
    gauges = [name for name in found if kinds.get(name, [{}])[0].get("type") == "gauge"]
    assert len(gauges) >= 10, gauges
    assert float(found["hakmem_process_resident_bytes"]["value"][1]) > 1 << 20
    dashboard = json.loads(DASHBOARD.read_text())
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            query = re.sub(r"\$\w+", ".*", target["expr"])
            answer = json.loads(got(f"{reader}/api/v1/query?query={urllib.parse.quote(query)}"))
            assert answer["status"] == "success", query
    redis.kill()
    redis.wait()
    assert exporter.wait(PATIENCE_S) == 0  # It ends with the process.
