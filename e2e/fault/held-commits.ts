import { type AddressInfo, createServer, type Server, Socket } from 'node:net';
import { join } from 'node:path';

/** `before`: the server never gets the commit. `after`: the server commits, and its client never learns it. */
export type HeldSide = 'before' | 'after';

/** A way to a database on which a chosen commit does not arrive, or is not answered. */
export interface HeldCommits {
  /** The address of the database by this way. */
  readonly url: string;
  /** Holds the commit of the next transaction with a statement that has this text; resolves when it is held. */
  hold(statement: string, side: HeldSide): Promise<void>;
  close(): Promise<void>;
}

interface Hold {
  readonly statement: string;
  readonly side: HeldSide;
  readonly reached: () => void;
}

/** @param databaseUrl of a server on a unix socket, whose folder is the parameter `host` */
export async function startHeldCommits(databaseUrl: string): Promise<HeldCommits> {
  const target = new URL(databaseUrl);
  const path = join(target.searchParams.get('host') ?? '', '.s.PGSQL.5432');
  const sockets = new Set<Socket>();
  let next: Hold | undefined;

  const relay = (client: Socket): void => {
    const server = new Socket().connect(path);
    let hold: Hold | undefined;
    let isHeld = false;
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      sockets.add(one);
      one.on('error', () => other.destroy());
      one.on('close', () => {
        sockets.delete(one);
        other.destroy();
      });
    }
    client.on('data', (bytes) => {
      const text = bytes.toString('latin1');
      if (next !== undefined && text.includes(next.statement)) [hold, next] = [next, undefined];
      if (hold === undefined || !/\bcommit\b/i.test(text)) {
        server.write(bytes);
        return;
      }
      isHeld = true;
      if (hold.side === 'after') server.write(bytes);
      else hold.reached();
    });
    server.on('data', (bytes) => {
      if (isHeld) hold?.reached();
      else client.write(bytes);
    });
  };

  const listener: Server = createServer(relay);
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  const url = new URL(target);
  url.searchParams.delete('host');
  url.host = `127.0.0.1:${(listener.address() as AddressInfo).port}`;
  return {
    url: url.href,
    hold: (statement, side) =>
      new Promise((reached) => {
        next = { statement, side, reached };
      }),
    close: () =>
      new Promise((resolve) => {
        for (const socket of sockets) socket.destroy();
        listener.close(() => resolve());
      }),
  };
}
