"""A web service with a thread per connection: each page is made anew. Argument: port."""
import collections
import http.server
import json
import sys


class Page(http.server.BaseHTTPRequestHandler):
    """Parses a document, filters, renders it as HTML and as JSON."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        rows = json.loads(DOCUMENT)
        groups = collections.defaultdict(list)
        for row in rows:
            groups[row["kind"]].append(f"<li id={row['id']}>{row['text'].title()}</li>")
        body = "".join(f"<ul class={kind}>{''.join(items)}</ul>" for kind, items in groups.items())
        body = f"<html>{body}<script>{json.dumps(rows)}</script></html>".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        """Nothing: the output is no part of the work."""


DOCUMENT = json.dumps([{"id": number, "kind": f"k{number % 7}", "text": f"some words {number} " * 3}
                       for number in range(300)])
server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Page)
server.daemon_threads = True
server.serve_forever()
