"""The app's events, and who is signed in to it."""

import os

from pydantic import BaseModel, ConfigDict

from wakeshift import Identity, Subscriber, Wakeshift

warnings: list[str] = []

wake = Wakeshift(os.environ["WAKESHIFT_KEY"], on_warning=warnings.append)


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


class Door(BaseModel):
    owner: str


class Opened(BaseModel):
    by: str


def may_watch(subscriber: Subscriber, door: Door) -> bool:
    """A door is its owner's to watch."""
    if door.owner == "nobody":
        raise LookupError("the door has no owner")
    return subscriber.user == door.owner


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
        wake.define_event(
            "door.opened",
            description="A door was opened",
            args=Door,
            payload=Opened,
            text=lambda opened, door: f"{opened.by} opened the door of {door.owner}",
            authorize=may_watch,
            delete_on_delivery=True,
        ),
    )
}


def signed_in(ctx) -> Identity | None:
    """Who is behind a request: a header over HTTP, the process's own user over stdio."""
    request = getattr(ctx, "request", None)
    user = os.environ.get("SIGNED_IN") if request is None else request.headers.get("x-user")
    return Identity(user=user) if user else None
