"""Prints a service's events as they are announced, with nothing but Python's standard library.

    TOKEN=… python3 follow.py http://127.0.0.1:7102 [cursor-file]

The cursor is the last event's sequence: with a file for it, the next run goes on where this one ended, without a gap.
"""

import http.client
import json
import os
import struct
import sys
import time
from urllib.parse import urlsplit

PATH = "/runtimecloud.eventlog.v1.EventLogService/WatchEvents"
# Heartbeats come far more often: a stream that is silent for so long is dead.
SILENCE_SECONDS = 60
RETRY_SECONDS = 2
END_OF_STREAM = 2


def watch(url, token, cursor):
    """Yields the messages of one call, from behind the cursor; ends when the connection does."""
    address = urlsplit(url)
    Connection = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
    connection = Connection(address.netloc, timeout=SILENCE_SECONDS)
    body = json.dumps({"afterSequence": cursor}).encode()
    headers = {"authorization": f"Bearer {token}", "content-type": "application/connect+json"}
    try:
        connection.request("POST", PATH, struct.pack(">BI", 0, len(body)) + body, headers)
        response = connection.getresponse()
        if response.status != 200:
            sys.exit(f"{url} refuses: {response.status} {response.read().decode()}")
        # A message of Connect's streams: a byte of flags, four of length, and so much JSON.
        while len(frame := response.read(5)) == 5:
            flags, length = struct.unpack(">BI", frame)
            message = json.loads(response.read(length))
            if flags & END_OF_STREAM:
                return explain(message.get("error"))
            yield message
    finally:
        connection.close()


def explain(error):
    """Says why a stream ended; one that was told to go elsewhere simply comes again."""
    if error is None or error["code"] in ("unavailable", "deadline_exceeded", "canceled"):
        return
    sys.exit(f"{error['code']}: {error.get('message', '')}")


def follow(url, token, cursor_file):
    cursor = read_cursor(cursor_file)
    while True:
        try:
            for message in watch(url, token, cursor):
                if "event" in message:
                    envelope = message["event"]["envelope"]
                    print(envelope["id"], envelope["type"], envelope["tenantid"], json.dumps(envelope["data"]), flush=True)
                # Behind the work: a crash in between repeats an event, and the id tells. JSON leaves a zero out.
                cursor = message.get("sequence", "0")
                write_cursor(cursor_file, cursor)
        except (OSError, http.client.HTTPException) as error:
            print(f"{url}: {error}; trying again", file=sys.stderr)
        time.sleep(RETRY_SECONDS)


def read_cursor(cursor_file):
    if cursor_file is None or not os.path.exists(cursor_file):
        return "0"
    with open(cursor_file) as file:
        cursor = file.read().strip()
    if not cursor.isdecimal():
        sys.exit(f"{cursor_file} holds no cursor, which is a number: mend it, or remove it to start from the oldest event")
    return cursor


def write_cursor(cursor_file, cursor):
    if cursor_file is None:
        return
    with open(f"{cursor_file}.new", "w") as file:
        file.write(cursor)
    os.replace(f"{cursor_file}.new", cursor_file)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or "TOKEN" not in os.environ:
        sys.exit(__doc__)
    if urlsplit(sys.argv[1]).scheme not in ("http", "https"):
        sys.exit(f"{sys.argv[1]} is no URL: it begins with http:// or https://")
    try:
        follow(sys.argv[1], os.environ["TOKEN"], sys.argv[2] if len(sys.argv) == 3 else None)
    except KeyboardInterrupt:
        pass
