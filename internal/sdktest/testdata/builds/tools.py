"""The app's tools. They are thin: each is one call of the SDK or two, and an error of the SDK becomes a result that says what a
program can see of it."""

import asyncio
import functools

import httpx
from mcp.server.mcpserver import Context, MCPServer
from mcp.types import CallToolResult, TextContent

import observed
from events import EVENTS, signed_in, wake, warnings
from wakeshift import ArgsError, ConversationId, Harness, SessionKey, Wakeshift, WakeshiftError, harness_agent, is_code

TOOLS = []


def add_to(server: MCPServer) -> None:
    for answered in TOOLS:
        server.add_tool(answered)


def facts(**what) -> CallToolResult:
    return CallToolResult(content=[], structured_content=what)


def refused(error: Exception) -> CallToolResult:
    seen = {"type": type(error).__name__}
    if isinstance(error, WakeshiftError):
        seen |= {"code": error.code, "status": error.status, "reason": error.reason or ""}
        assert is_code(error, error.code) and not is_code(error, "")
    return CallToolResult(is_error=True, content=[TextContent(type="text", text=str(error))], structured_content=seen)


def tool(call):
    """Makes a tool of the app, whose errors are answered."""

    @functools.wraps(call)
    async def answered(*args, **named):
        try:
            return await call(*args, **named)
        except (WakeshiftError, ArgsError, ValueError) as error:
            return refused(error)

    TOOLS.append(answered)
    return answered


def user_of(ctx: Context) -> str | None:
    who = signed_in(ctx.request_context)
    return who.user if who else None


# The app and its keys


@tool
async def which_app() -> CallToolResult:
    """Say which app the key is."""
    app = await wake.app()
    return facts(id=app.id, name=app.name, app_id=wake.app_id)


@tool
async def another_app(key: str, core: str | None = None, timeout: float = 20) -> CallToolResult:
    """Say which app another key is, of this core or another one."""
    async with httpx.AsyncClient() as http:
        other = Wakeshift(key, core=core, timeout=timeout, http=http)
        try:
            names_its_app = bool(other.app_id)
        except RuntimeError:
            names_its_app = False
        app = await other.app()
    return facts(id=app.id, names_its_app=names_its_app, app_id=other.app_id, mode=other.mode, key_id=app.key_id, key_name=app.key_name)


@tool
async def hurry(key: str, core: str, times: int) -> CallToolResult:
    """Ask another core for the same many times at once."""
    async with httpx.AsyncClient() as http:
        other = Wakeshift(key, core=core, http=http)
        answers = await asyncio.gather(*(other.topic_status("ci/one") for _ in range(times)), return_exceptions=True)
    for answer in answers:
        if isinstance(answer, Exception):
            raise answer
    return facts(answers=times)


@tool
async def publish_manifest(manifest: dict) -> CallToolResult:
    """Tell the core what the app may do."""
    return facts(kept=await wake.publish_manifest(manifest))


@tool
async def request(method: str, path: str, body: dict | None = None) -> CallToolResult:
    """Make a call that the SDK has no function for."""
    return facts(answer=await wake.request_app(method, path, body))


@tool
async def warned() -> CallToolResult:
    """Say what the SDK warned of."""
    return facts(warnings=warnings)


@tool
async def not_run() -> CallToolResult:
    """Name the SDK's public calls that have not run."""
    return facts(calls=observed.not_run())


# Events


@tool
async def watch(
    event: str, arguments: dict, ctx: Context, session_key: SessionKey = None, harness: Harness = None, conversation_id: ConversationId = None
) -> CallToolResult:
    """Subscribe the calling conversation."""
    wake_args = {"session_key": session_key, "harness": harness, "conversation_id": conversation_id}
    made = await EVENTS[event].subscribe(ctx, arguments, user=user_of(ctx), wake_args=wake_args)
    result = made.result("Watching.")
    result.structured_content = {"id": made.id, "created": made.created, "harness": made.agent.harness, "via": made.agent.via}
    return result


@tool
async def unwatch(
    event: str, arguments: dict, ctx: Context, session_key: SessionKey = None, conversation_id: ConversationId = None
) -> CallToolResult:
    """End the calling conversation's subscription."""
    wake_args = {"session_key": session_key, "conversation_id": conversation_id}
    return facts(ended=await EVENTS[event].unsubscribe(ctx, arguments, user=user_of(ctx), wake_args=wake_args))


@tool
async def end(event: str, user: str, id: str) -> CallToolResult:
    """End one of a user's subscriptions to events."""
    return facts(ended=await EVENTS[event].end(user, id))


@tool
async def emit(event: str, arguments: dict, payload: dict, id: str | None = None, to: str | None = None) -> CallToolResult:
    """Say that something happened."""
    done = await EVENTS[event].emit(arguments, payload, to=to, id=id)
    return facts(matched=done.matched, duplicate=done.duplicate)


@tool
async def publish_url(event: str, arguments: dict, to: str | None = None) -> CallToolResult:
    """Make an address that emits what is posted to it."""
    made = await EVENTS[event].publish_url(arguments, to=to)
    return facts(id=made.id, url=made.url, event=made.event)


# Topics


@tool
async def watch_topic(
    topic: str,
    ctx: Context,
    once: bool = False,
    keep: dict | None = None,
    replay: str | None = None,
    ttl: str | int | None = None,
    session_key: SessionKey = None,
) -> CallToolResult:
    """Subscribe the calling conversation to a topic."""
    call = wake.call(ctx, user=user_of(ctx), session=session_key)
    made = await wake.subscribe(call, topic, once=once, filter=keep, replay=replay, ttl=ttl)
    result = made.result("Watching.")
    result.structured_content = {
        "id": made.id,
        "topic": made.topic,
        "once": made.once,
        "filter": made.filter,
        "expires_at": made.expires_at.isoformat(),
    }
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
async def topic_url(topic: str) -> CallToolResult:
    """Make an address that publishes what is posted to it."""
    made = await wake.publish_url(topic)
    return facts(id=made.id, url=made.url, topic=made.topic)


@tool
async def revoke_url(id: str) -> CallToolResult:
    """End such an address, a topic's or an event's."""
    await wake.revoke_publish_url(id)
    return facts(revoked=id)


@tool
async def news(ctx: Context, session_key: SessionKey = None, conversation_id: ConversationId = None) -> CallToolResult:
    """Do nothing, and bring what waits for the conversation."""
    call = wake.call(ctx, user=user_of(ctx), session=session_key, conversation=conversation_id)
    return await wake.annotate(call, CallToolResult(content=[TextContent(type="text", text="Nothing else.")]))


# One subscription


@tool
async def subscription_status(id: str) -> CallToolResult:
    """Say how a subscription stands."""
    status = await wake.subscription_status(id)
    return facts(id=status.id, topic=status.topic, status=status.status, connected=status.connected, via=status.via)


@tool
async def send(id: str, text: str, data: dict | None = None, event_id: str | None = None) -> CallToolResult:
    """Say something to one subscription."""
    return facts(status=await wake.send(id, text=text, data=data, id=event_id))


@tool
async def end_subscription(id: str) -> CallToolResult:
    """End a subscription."""
    return facts(ended=await wake.end_subscription(id))


# The app's users


@tool
async def unsubscribe_user(user: str, topic: str | None = None) -> CallToolResult:
    """End a user's subscriptions to a topic, or to all."""
    return facts(ended=await wake.unsubscribe_user(user, topic))


@tool
async def forget_user(user: str) -> CallToolResult:
    """Remove all that is kept of a user."""
    return facts(forgotten=await wake.forget_user(user))


@tool
async def workspace(user: str, name: str) -> CallToolResult:
    """Say which workspace is a user's."""
    return facts(workspace=await wake.workspace(user, name))


@tool
async def add_agent(workspace: str, client: str) -> CallToolResult:
    """Let an agent into a workspace, named after its client."""
    agent = harness_agent(client)
    return facts(agent=agent, grant=await wake.add_agent(workspace, agent, client))


@tool
async def check_agent(workspace: str, agent: str) -> CallToolResult:
    """See that an agent is let in."""
    await wake.check_agent(workspace, agent)
    return facts(agent=agent)
