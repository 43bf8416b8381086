"""An MCP server with one event, by mcp-webhook-events. It prints its address, and with each line on its input publishes that number."""

import os
import socket
import sys
import threading

import uvicorn
from mcp.server import MCPServer
from mcp_webhook_events import EventDefinition, McpEvents, SafeHttp

number = {"type": "object", "properties": {"pages": {"type": "integer"}}}
server = MCPServer("peer")
events = McpEvents(
    server,
    store=sys.argv[1],
    definitions=[EventDefinition("site.updated", "A site was updated", {"type": "object"}, number, matches=lambda arguments, data: True)],
    http=SafeHttp(allow_insecure_for_tests=True),
)
events.install()


def publish():
    for line in sys.stdin:
        for _ in range(2):  # the second time as a repetition, under the same id
            events.publish("site.updated", {"pages": int(line)}, event_id="evt_" + line.strip())
            events.deliver_pending()
    os._exit(0)  # whoever started this has gone


listener = socket.create_server(("127.0.0.1", 0))
print("http://127.0.0.1:%d" % listener.getsockname()[1], flush=True)
threading.Thread(target=publish, daemon=True).start()
app = server.streamable_http_app(stateless_http=True, json_response=True)
uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])
