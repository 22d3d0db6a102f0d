"""Flask-Session: a session of a web page stored, read and expired."""

from datetime import timedelta

from flask import Flask, session
from flask_session import Session
from redis import Redis
from support import PORT, expect, main, until

CONNECTION = Redis(port=PORT)


def page(lifetime):
    app = Flask("page")
    app.config.update(SESSION_TYPE="redis", SESSION_REDIS=CONNECTION, PERMANENT_SESSION_LIFETIME=lifetime)
    Session(app)

    @app.get("/count")
    def count():
        session["count"] = session.get("count", 0) + 1
        return str(session["count"])

    @app.get("/leave")
    def leave():
        session.clear()
        return "left"

    return app


def scenario(_):
    client = page(timedelta(hours=1)).test_client()
    expect([client.get("/count").text for _ in range(3)], ["1", "2", "3"], "counts of the session")
    expect(page(timedelta(hours=1)).test_client().get("/count").text, "1", "the count of another session")
    keys = CONNECTION.keys("session:*")
    expect(len(keys), 2, "sessions")
    expect(all(3500 < CONNECTION.ttl(key) <= 3600 for key in keys), True, "time to live")
    client.get("/leave")
    expect(len(CONNECTION.keys("session:*")), 1, "sessions after one was left")
    brief = page(timedelta(seconds=1)).test_client()
    expect(brief.get("/count").text, "1", "the count of a brief session")
    until(lambda: len(CONNECTION.keys("session:*")) == 1, "the brief session expires")
    return "sessions were stored, read, left, and gone when their time was over"


main(__file__, scenario)
