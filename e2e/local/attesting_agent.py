#!/usr/bin/env python3
"""One Workload API socket for every service, like that of an agent on a node: callers are identified by their process.

    attesting_agent.py LISTEN_SOCKET FOLDER_OF_SOCKETS

The kernel identifies the connecting process (SO_PEERCRED), its command line the component; the connection is then
joined to that service's own socket in the folder. Prints "ready" when it listens.
"""
import pathlib
import socket
import struct
import sys
import threading

CLIENTS = {
    "tenant": "service-tenant",
    "wallet": "service-wallet",
    "register": "service-register",
    "blueprint": "service-blueprint",
    "credential": "service-credential",
    "validator": "validator-0",
    "gateway": "service-gateway",
    "standalone": "service-operator",
}


def client_of(connection):
    pid, _, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    command = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode()
    return next((client for name, client in CLIENTS.items() if f"components/{name}/main.ts" in command), None)


def copy(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        pass
    finally:
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def join(connection, folder):
    client = client_of(connection)
    if client is None:
        connection.close()
        return
    service = socket.socket(socket.AF_UNIX)
    service.connect(f"{folder}/{client}.sock")
    for ends in ((connection, service), (service, connection)):
        threading.Thread(target=copy, args=ends, daemon=True).start()


def main():
    path, folder = sys.argv[1:3]
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)
    print("ready", flush=True)
    while True:
        join(listener.accept()[0], folder)


if __name__ == "__main__":
    main()
