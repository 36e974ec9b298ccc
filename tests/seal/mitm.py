#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A man in the middle of UCX's tcp connections between the two hosts of tools/two_hosts.sh.

usage: mitm.py [options] -- COMMAND...        (as root, on uci-a; COMMAND runs there)

What processes on uci-a and uci-b say to each other over the ports of UCX_TCP_PORT_RANGE goes through this process, which understands
UCX's tcp stream as far as its frames: one byte of id, four of length, and the content. It looks for a known text in all that passes, and
attacks frames that carry active messages of UCX's user, of whom UCI is the only one, at a rate, drawn from a seed:

    flip      change one bit of the content
    forge     write random bytes over a part of it
    truncate  take bytes out of it
    drop      do not pass it on
    replay    pass it on again, at once or some frames later
    reorder   pass it on some frames later
    splice    put in a frame of another connection
    reflect   put in a frame that went the other way

Content is what lies behind UCX's own header of 8 bytes, and before its footer: what UCX itself does with a header that is a lie is not UCI's
to answer for. In frames that are put in the footer is that of the connection they are put in, as an attacker would write it. With
--wild any byte of any frame may be changed, headers of UCX's too.

Ends with one line of JSON: what passed, what was done to it, and how often the text was seen. The exit status is COMMAND's.
"""
import argparse
import asyncio
import collections
import ctypes
import json
import os
import random
import socket
import struct
import subprocess
import sys

NEEDLE = b"UCI-MITM-PLAINTEXT"  # as in patterns.c
HOSTS = ("uci-a", "uci-b")
PORTS = (23000, 23999)
LISTEN = 19999
MARK = 0x5EA1  # of connections of ours, which are not led to us
SO_ORIGINAL_DST = 80
MAGIC = struct.pack("<Q", 0xCAFEBABE12345678)  # what a connection begins with
HEADER = struct.Struct("<BI")
CM, PUT_REQ, KEEPALIVE = 32, 33, 35  # ids of the transport itself; behind a PUT_REQ as many bytes follow as it says
AM_SINGLE, AM_FIRST, AM_MIDDLE, AM_REPLY = 23, 24, 25, 26  # ids of active messages of UCX's user
FOOTER = {AM_SINGLE: 0, AM_FIRST: 24, AM_MIDDLE: 16, AM_REPLY: 8}  # bytes of UCX's at the end
UCX_HEADER = 8
KINDS = ("flip", "forge", "truncate", "drop", "replay", "reorder", "splice", "reflect")
INSERTED = (AM_SINGLE, AM_REPLY)  # whole messages, which can stand anywhere
LATE_FRAMES = 20
LATE_SECONDS = 0.05
KEPT = 64  # frames remembered of a connection and direction

libc = ctypes.CDLL(None, use_errno=True)


def in_host(host, make):
    """What MAKE returns when it is called in the network of HOST."""
    with open("/proc/self/ns/net", "rb") as here, open(f"/run/netns/{host}", "rb") as there:
        if libc.setns(there.fileno(), 0) != 0:
            raise OSError(ctypes.get_errno(), f"setns to {host}")
        try:
            return make()
        finally:
            if libc.setns(here.fileno(), 0) != 0:
                raise OSError(ctypes.get_errno(), "setns back")


def redirect(host):
    """Lead UCX's connections from HOST to the other one to us."""
    device = host.replace("uci-", "uci-veth-")
    rules = f"""table ip uci_mitm {{
        chain output {{
            type nat hook output priority -100;
            oifname "{device}" tcp dport {PORTS[0]}-{PORTS[1]} meta mark != {MARK} redirect to :{LISTEN};
        }}
    }}"""
    in_host(host, lambda: subprocess.run(["nft", "-f", "-"], input=rules, text=True, check=True))


class Direction:
    """One way of a connection."""

    def __init__(self, middle, name, writer):
        self.middle, self.name, self.writer = middle, name, writer
        self.reverse = None
        self.tail = b""
        self.kept = collections.deque(maxlen=KEPT)
        self.late = []  # [frames to go, id, content]
        self.footers = {}
        self.timer = None

    def look(self, data):
        """Count the text, also where it is cut in two."""
        text = self.tail + data
        self.middle.counts["plaintext"] += text.count(NEEDLE)
        self.tail = text[-(len(NEEDLE) - 1):]

    def send(self, number, content):
        """Pass on a frame."""
        if not self.writer.is_closing():
            self.writer.write(HEADER.pack(number, len(content)) + content)

    def release(self, everything=False):
        """Send what is late and due."""
        for entry in self.late:
            entry[0] -= 1
        for entry in [entry for entry in self.late if everything or entry[0] <= 0]:
            self.late.remove(entry)
            self.send(*entry[1:])

    def delay(self, number, content):
        """Keep a frame until some more have passed, or none comes for a while."""
        self.late.append([1 + self.middle.random.randrange(LATE_FRAMES), number, content])
        if self.timer is not None:
            self.timer.cancel()
        self.timer = asyncio.get_running_loop().call_later(LATE_SECONDS, self.release, True)

    def put_in(self, source):
        """Put a frame of SOURCE, another direction, in front of the next one."""
        choices = [frame for frame in source.kept if frame[0] == AM_SINGLE or frame[0] in self.footers]
        if not choices:
            return False
        number, content = self.middle.random.choice(choices)
        size = FOOTER[number]
        if size:
            content = content[:-size] + self.footers[number]
        self.send(number, content)
        return True

    def attack(self, number, content, kind):
        """What becomes of a frame: (done?, passed on by us?)."""
        start, end = UCX_HEADER, len(content) - FOOTER[number]
        draw = self.middle.random
        if kind in ("flip", "forge", "truncate"):
            if end - start < 1:
                return False, False
            changed = bytearray(content)
            at = draw.randrange(start, end)
            length = min(1 + draw.randrange(64), end - at)
            if kind == "flip":
                changed[at] ^= 1 << draw.randrange(8)
            elif kind == "forge":
                changed[at:at + length] = draw.randbytes(length)
            else:
                header = struct.unpack_from("<I", content, 4)[0] if number != AM_MIDDLE else 0
                length = min(length, end - start - header)
                if length < 1:
                    return False, False
                at = start + draw.randrange(end - start - header - length + 1)
                del changed[at:at + length]
            self.send(number, bytes(changed))
            return True, True
        if kind == "drop":
            return True, True
        if kind == "replay":
            self.send(number, content)
            self.delay(number, content)
            return True, True
        if kind == "reorder":
            self.delay(number, content)
            return True, True
        others = [self.reverse] if kind == "reflect" else [other for other in self.middle.directions if other not in (self, self.reverse)]
        return bool(others) and self.put_in(draw.choice(others)), False

    def frame(self, number, content):
        """A frame has come: look, attack, pass on."""
        middle = self.middle
        middle.counts["frames"] += 1
        middle.counts["bytes"] += len(content)
        middle.ids[number] += 1
        self.look(content)
        passed = False
        if middle.wild and number not in (CM, PUT_REQ) and content and middle.random.random() < middle.rate:
            changed = bytearray(content)
            changed[middle.random.randrange(len(changed))] ^= 1 << middle.random.randrange(8)
            content = bytes(changed)
            middle.counts["wild"] += 1
        elif number in FOOTER and not middle.wild and middle.kinds and middle.random.random() < middle.rate:
            kind = middle.random.choice(middle.kinds)
            whole = number in INSERTED or kind in ("flip", "forge")
            done, passed = self.attack(number, content, kind) if whole else (False, False)
            middle.counts[kind] += done
        if number in FOOTER:
            if FOOTER[number]:
                self.footers[number] = content[-FOOTER[number]:]
            if number in INSERTED:
                self.kept.append((number, content))
        if not passed:
            self.send(number, content)
        self.release()

    def raw(self, data):
        """Bytes without frames: what is put into memory. They are flipped as others are."""
        self.middle.counts["bytes"] += len(data)
        self.look(data)
        if data and "flip" in self.middle.kinds and self.middle.random.random() < self.middle.rate:
            changed = bytearray(data)
            changed[self.middle.random.randrange(len(changed))] ^= 1 << self.middle.random.randrange(8)
            data = bytes(changed)
            self.middle.counts["flip"] += 1
        self.writer.write(data)

    async def run(self, reader, begins):
        """Relay until the end of the connection."""
        try:
            if begins:
                magic = await reader.readexactly(len(MAGIC))
                if magic != MAGIC:
                    self.middle.complaints.append(f"{self.name}: does not begin as a connection of UCX's does: {magic.hex()}")
                self.writer.write(magic)
            while True:
                number, length = HEADER.unpack(await reader.readexactly(HEADER.size))
                content = await reader.readexactly(length)
                self.frame(number, content)
                if number == PUT_REQ:
                    left = struct.unpack_from("<QQI", content)[1]
                    while left > 0:
                        data = await reader.read(min(left, 65536))
                        if not data:
                            break
                        left -= len(data)
                        self.raw(data)
                if self.writer.transport.get_write_buffer_size() > 1 << 20:
                    await self.writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.release(True)
            self.writer.close()


class Middle:
    """All connections, and what is done to them."""

    def __init__(self, options):
        self.random = random.Random(options.seed)
        self.rate, self.kinds, self.wild = options.rate, options.attack, options.wild
        self.counts, self.ids = collections.Counter(), collections.Counter()
        self.complaints, self.directions, self.tasks = [], [], set()

    def server_socket(self, host):
        """Where connections from HOST come in."""
        def make():
            sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(("0.0.0.0", LISTEN))
            sock.listen(64)
            return sock
        return in_host(host, make)

    async def connect(self, host, target):
        """A connection of ours from HOST to TARGET, around our own redirection."""
        def make():
            sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, MARK)
            sock.setblocking(False)
            return sock
        sock = in_host(host, make)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.get_running_loop().sock_connect(sock, target)
        return await asyncio.open_connection(sock=sock)

    async def accept(self, host, reader, writer):
        """Relay one connection from HOST."""
        address = writer.get_extra_info("socket").getsockopt(socket.SOL_IP, SO_ORIGINAL_DST, 16)
        target = socket.inet_ntoa(address[4:8]), struct.unpack("!H", address[2:4])[0]
        try:
            far_reader, far_writer = await self.connect(host, target)
        except OSError as error:
            self.complaints.append(f"from {host} to {target}: {error}")
            writer.close()
            return
        self.counts["connections"] += 1
        there = Direction(self, f"{host} to {target[0]}:{target[1]}", far_writer)
        back = Direction(self, f"{target[0]}:{target[1]} to {host}", writer)
        there.reverse, back.reverse = back, there
        self.directions += [there, back]
        await asyncio.gather(there.run(reader, True), back.run(far_reader, False))

    async def run(self, command):
        """Relay until COMMAND ends. Its exit status."""
        for host in HOSTS:
            redirect(host)
            await asyncio.start_server(lambda reader, writer, host=host: self.accept(host, reader, writer), sock=self.server_socket(host))
        process = await asyncio.create_subprocess_exec(*command, env={**os.environ, "UCX_TCP_PORT_RANGE": f"{PORTS[0]}-{PORTS[1]}"})
        return await process.wait()


def main():
    """Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attack", type=lambda text: text.split(","), default=[], metavar="KIND,...", help=f"'all', or of {', '.join(KINDS)}; default: none")
    parser.add_argument("--wild", action="store_true", help="change any byte of any frame instead")
    parser.add_argument("--rate", type=float, default=0.02, help="of frames (0.02)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--report", help="write the line of JSON to this file (default: standard error)")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    if options.attack == ["all"]:
        options.attack = list(KINDS)
    if set(options.attack) - set(KINDS):
        parser.error(f"there are no attacks {', '.join(set(options.attack) - set(KINDS))}")
    middle = Middle(options)
    status = asyncio.run(middle.run(options.command))
    text = json.dumps({**{name: 0 for name in ("connections", "frames", "bytes", "plaintext", "wild", *KINDS)}, **middle.counts,
                       "ids": {str(number): count for number, count in sorted(middle.ids.items())}, "complaints": middle.complaints})
    if options.report:
        with open(options.report, "w", encoding="ascii") as stream:
            print(text, file=stream)
    else:
        print(text, file=sys.stderr)
    return 128 - status if status < 0 else status


if __name__ == "__main__":
    sys.exit(main())
