"""An app that tells agents of builds and reviews, written with the published SDK as its README shows it.

It serves MCP over stdio, or with the argument "http" over streamable HTTP on a free port of the loopback interface, whose
address is then the first line it prints.
"""

import socket
import sys

from mcp.server.mcpserver import MCPServer

import observed

observed.begin()  # so that what the next ones call counts

import events  # noqa: E402
import tools  # noqa: E402

server = MCPServer("builds", log_level="WARNING")
events.wake.attach(server, identify=events.signed_in)
tools.add_to(server)


def main() -> None:
    if sys.argv[1:] != ["http"]:
        server.run("stdio")
        return
    import uvicorn

    listener = socket.create_server(("127.0.0.1", 0))
    print("http://127.0.0.1:%d/mcp" % listener.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="error")).run(sockets=[listener])


main()
