"""An app that tells agents of builds and reviews, written with the published SDK as its README shows it.

It serves MCP over stdio, or with the argument "http" over streamable HTTP on a free port of the loopback interface, whose
address is then the first line it prints. Its tools are thin: each is one call of the SDK, and an error of the SDK becomes a
result that names the error's type, code and status.
"""

import functools
import os
import socket
import sys

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.types import CallToolResult, TextContent
from pydantic import BaseModel, ConfigDict

from wakeshift import ArgsError, ConversationId, Harness, Identity, SessionKey, Wakeshift, WakeshiftError

wake = Wakeshift(os.environ["WAKESHIFT_KEY"])


class Repository(BaseModel):
    repo: str
    branch: str | None = None


class Build(BaseModel):
    branch: str
    failures: int


class Place(BaseModel):
    # What a native client adds to the arguments, such as a voucher, is the core's to judge.
    model_config = ConfigDict(extra="allow")

    place: str


class Release(BaseModel):
    version: str


class Review(BaseModel):
    title: str


EVENTS = {
    event.name: event
    for event in (
        wake.define_event(
            "build.finished",
            description="A build of a repository finished",
            args=Repository,
            payload=Build,
            text=lambda build, asked: f"{asked.repo}: {build.failures} failures on {build.branch}",
        ),
        wake.define_event(
            "release.deployed",
            description="A release reached a place",
            args=Place,
            payload=Release,
            text=lambda release, asked: f"{release.version} is on {asked.place}",
        ),
        wake.define_event(
            "review.requested",
            description="Your review is asked for",
            args={"type": "object", "properties": {"repo": {"type": "string"}}, "required": ["repo"]},
            payload=Review,
            text=lambda review, asked: f"Please review {review.title} of {asked['repo']}",
            personal=True,
        ),
    )
}


def signed_in(ctx) -> Identity | None:
    """Who is behind a request: a header over HTTP, the process's own user over stdio."""
    request = getattr(ctx, "request", None)
    user = os.environ.get("SIGNED_IN") if request is None else request.headers.get("x-user")
    return Identity(user=user) if user else None


def user_of(ctx: Context) -> str | None:
    who = signed_in(ctx.request_context)
    return who.user if who else None


server = MCPServer("builds", log_level="WARNING")
wake.attach(server, identify=signed_in)


def facts(**what) -> CallToolResult:
    return CallToolResult(content=[], structured_content=what)


def tool(call):
    """Adds a tool to the server that answers an error of the SDK with what a program can see of it."""

    @functools.wraps(call)
    async def answered(*args, **named):
        try:
            return await call(*args, **named)
        except (WakeshiftError, ArgsError) as error:
            return CallToolResult(
                is_error=True,
                content=[TextContent(type="text", text=str(error))],
                structured_content={
                    "type": type(error).__name__,
                    "code": getattr(error, "code", ""),
                    "status": getattr(error, "status", 0),
                },
            )

    server.add_tool(answered)
    return answered


@tool
async def which_app() -> CallToolResult:
    """Say which app the key is."""
    app = await wake.app()
    return facts(id=app.id, name=app.name, app_id=wake.app_id)


@tool
async def watch(
    event: str, arguments: dict, ctx: Context, session_key: SessionKey = None, harness: Harness = None, conversation_id: ConversationId = None
) -> CallToolResult:
    """Subscribe the calling conversation."""
    wake_args = {"session_key": session_key, "harness": harness, "conversation_id": conversation_id}
    made = await EVENTS[event].subscribe(ctx, arguments, user=user_of(ctx), wake_args=wake_args)
    result = made.result("Watching.")
    result.structured_content = {"created": made.created, "harness": made.agent.harness, "via": made.agent.via}
    return result


@tool
async def unwatch(event: str, arguments: dict, ctx: Context, session_key: SessionKey = None) -> CallToolResult:
    """End the calling conversation's subscription."""
    ended = await EVENTS[event].unsubscribe(ctx, arguments, user=user_of(ctx), wake_args={"session_key": session_key})
    return facts(ended=ended)


@tool
async def emit(event: str, arguments: dict, payload: dict, id: str | None = None, to: str | None = None) -> CallToolResult:
    """Say that something happened."""
    done = await EVENTS[event].emit(arguments, payload, to=to, id=id)
    return facts(matched=done.matched, duplicate=done.duplicate)


@tool
async def watch_topic(
    topic: str, ctx: Context, once: bool = False, keep: dict | None = None, session_key: SessionKey = None
) -> CallToolResult:
    """Subscribe the calling conversation to a topic."""
    call = wake.call(ctx, user=user_of(ctx), session=session_key)
    made = await wake.subscribe(call, topic, once=once, filter=keep, ttl="1h")
    result = made.result("Watching.")
    result.structured_content = {"id": made.id, "topic": made.topic, "once": made.once, "expires_at": made.expires_at.isoformat()}
    return result


@tool
async def unwatch_topic(ctx: Context, topic: str | None = None, session_key: SessionKey = None) -> CallToolResult:
    """End the calling conversation's subscription to a topic, or to all."""
    return facts(ended=await wake.unsubscribe(wake.call(ctx, user=user_of(ctx), session=session_key), topic))


@tool
async def publish(topics: list[str], text: str, data: dict | None = None, id: str | None = None) -> CallToolResult:
    """Say something on topics."""
    done = await wake.publish(topics, text=text, data=data, id=id)
    return facts(matched=done.matched, duplicate=done.duplicate)


@tool
async def topic_status(topic: str) -> CallToolResult:
    """Say who waits on a topic."""
    status = await wake.topic_status(topic)
    return facts(topic=status.topic, subscriptions=status.subscriptions, connected=status.connected, via=status.via)


@tool
async def close_topic(topic: str) -> CallToolResult:
    """End all subscriptions to a topic."""
    return facts(closed=await wake.close_topic(topic))


@tool
async def publish_url(event: str, arguments: dict) -> CallToolResult:
    """Make an address that emits what is posted to it."""
    made = await EVENTS[event].publish_url(arguments)
    return facts(id=made.id, url=made.url, event=made.event)


@tool
async def topic_url(topic: str) -> CallToolResult:
    """Make an address that publishes what is posted to it."""
    made = await wake.publish_url(topic)
    return facts(id=made.id, url=made.url, topic=made.topic)


@tool
async def revoke_url(id: str) -> CallToolResult:
    """End such an address."""
    await wake.revoke_publish_url(id)
    return facts(revoked=id)


@tool
async def news(ctx: Context, session_key: SessionKey = None) -> CallToolResult:
    """Do nothing, and bring what waits for the conversation."""
    call = wake.call(ctx, user=user_of(ctx), session=session_key)
    return await wake.annotate(call, CallToolResult(content=[TextContent(type="text", text="Nothing else.")]))


@tool
async def offer_nothing() -> CallToolResult:
    """Tell the core that the app has no events any more."""
    kept = await wake.publish_manifest({"events": []})
    return facts(events=len(kept["events"]))


def main() -> None:
    if sys.argv[1:] != ["http"]:
        server.run("stdio")
        return
    listener = socket.create_server(("127.0.0.1", 0))
    print("http://127.0.0.1:%d/mcp" % listener.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="error")).run(sockets=[listener])


main()
