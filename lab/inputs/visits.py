"""A web service that remembers its visitors: each has a session that later visits add to, and the
oldest sessions end when there are too many. Argument: port."""
import collections
import http.server
import json
import sys

SESSIONS_MOST = 250


class Visit(http.server.BaseHTTPRequestHandler):
    """The path names the visitor. The answer is the visitor's history."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        session = SESSIONS.setdefault(self.path, {"user": self.path[1:], "visits": 0, "seen": []})
        SESSIONS.move_to_end(self.path)
        session["visits"] += 1
        words = [f"{self.path} saw item {number * session['visits']}" for number in range(60)]
        session["seen"] += [{"item": word, "at": session["visits"]} for word in words[::20]]
        if len(SESSIONS) > SESSIONS_MOST:
            SESSIONS.popitem(last=False)
        page = {"session": session, "offers": [{"text": word.title(), "price": len(word) / 7}
                                               for word in words]}
        body = json.dumps(json.loads(json.dumps(page))).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        """Nothing: the output is no part of the work."""


SESSIONS = collections.OrderedDict()
server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Visit)
server.daemon_threads = True
server.serve_forever()
