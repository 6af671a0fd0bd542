"""Hold a served model under many clients that never pause, and report latency and errors.

    python benchmarks/service_load.py --clients 200 --seconds 60

The service is a process of its own, as `taxofit serve` starts it, and so are the clients, who share
one event loop and speak plain HTTP/1.1 over connections that stay open. Each sends its next request
when the last one is answered, so the median is the number of clients divided by the throughput.
Whatever is not an answer 200 is an error. `--max-rows 1` of the service switches batches off:

    python benchmarks/service_load.py --seconds 20 --serve --max-rows 1
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen

import numpy as np

from taxofit.datasets import make_shop_catalogue

START_SECONDS = 120


def start_service(model, options):
    """Start `taxofit serve` on a free port; return the process and its URL."""
    process = subprocess.Popen(
        [sys.executable, "-m", "taxofit", "serve", model, "--port", "0", *options],
        stderr=subprocess.PIPE,
        text=True,
    )
    for line in process.stderr:
        found = re.search(r"http://\S+:\d+", line)
        if found:
            return process, found[0]
    sys.exit(f"the service did not start; it ended with {process.wait()}")


async def ask(reader, writer, request):
    """Send a request and return its status when the whole answer is here."""
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(re.search(rb"content-length: (\d+)", head)[1])
    await reader.readexactly(length)
    return int(head[9:12])


async def be_a_client(address, requests, end, latencies, outcomes):
    """Ask one request after the other on one connection until the end."""
    reader, writer = await asyncio.open_connection(*address)
    try:
        while (begun := time.perf_counter()) < end:
            outcomes[await ask(reader, writer, next(requests))] += 1
            latencies.append(time.perf_counter() - begun)
    except (OSError, asyncio.IncompleteReadError) as error:
        outcomes[type(error).__name__] += 1
    finally:
        writer.close()


async def load(url, bodies, n_clients, seconds):
    """Return all latencies in seconds, and how often each status or failure came."""
    parts = urlsplit(url)
    requests = itertools.cycle(
        b"POST /v1/predict HTTP/1.1\r\nhost: %s\r\ncontent-type: application/json\r\n"
        b"content-length: %d\r\n\r\n%s" % (parts.netloc.encode(), len(body), body)
        for body in bodies
    )
    latencies, outcomes = [], Counter()
    end = time.perf_counter() + seconds
    address = (parts.hostname, parts.port)
    clients = [be_a_client(address, requests, end, latencies, outcomes) for _ in range(n_clients)]
    await asyncio.gather(*clients)
    return np.array(latencies), outcomes


def metrics(url):
    """Return batches, rows in them, and CPU seconds of the service so far."""
    with urlopen(f"{url}/v1/metrics") as answer:  # noqa: S310  (the service started here)
        text = answer.read().decode()
    names = "taxofit_batch_rows_count", "taxofit_batch_rows_sum", "process_cpu_seconds_total"
    return np.array([float(re.search(rf"^{name} (\S+)", text, re.MULTILINE)[1]) for name in names])


def make_model(folder):
    subprocess.run(
        [sys.executable, "-m", "taxofit", "demo", "--out", folder, "--quiet"], check=True
    )
    return str(Path(folder, "model"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", help="a folder that reads texts; by default the demo's")
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rows", type=int, default=1, help="of each request")
    parser.add_argument("--serve", nargs=argparse.REMAINDER, default=[], help="options of serve")
    arguments = parser.parse_args()
    texts = itertools.cycle(make_shop_catalogue(1000).texts)
    bodies = [
        json.dumps({"rows": [next(texts) for _ in range(arguments.rows)]}).encode()
        for _ in range(1000)
    ]
    with tempfile.TemporaryDirectory() as folder:
        model = arguments.model or make_model(folder)
        process, url = start_service(model, arguments.serve)
        try:
            asyncio.run(load(url, bodies, arguments.clients, 2.0))  # warm
            before = metrics(url)
            latencies, outcomes = asyncio.run(
                load(url, bodies, arguments.clients, arguments.seconds)
            )
            n_batches, n_rows, cpu_seconds = metrics(url) - before
        finally:
            process.send_signal(signal.SIGTERM)
            code = process.wait(START_SECONDS)
    p50, p99, worst = (1000 * np.quantile(latencies, q) for q in (0.5, 0.99, 1.0))
    print(
        f"{arguments.clients} clients, {arguments.seconds:g} s, {arguments.rows} rows a request: "
        f"{latencies.size:,} requests, {latencies.size / arguments.seconds:,.0f} a second; "
        f"p50 {p50:.1f} ms, p99 {p99:.1f} ms, longest {worst:.0f} ms; "
        f"{n_rows / n_batches:.1f} rows a batch; "
        f"{1000 * cpu_seconds / latencies.size:.2f} ms of CPU a request; "
        f"answers {dict(outcomes)}; the service ended with {code}; {os.cpu_count()} cores"
    )
    sys.exit(set(outcomes) != {200})


if __name__ == "__main__":
    main()
