import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';

/** A proxy that sends each request, also of one connection, to the next of its targets. */
export interface Balancer {
  readonly url: string;
  /** Requests by target. */
  readonly counts: readonly number[];
  /** Excludes a target from the next requests, as after a failed health check, or includes it again. */
  exclude(place: number, isExcluded: boolean): void;
  stop(): Promise<void>;
}

/** Answers a request itself; false leaves it to the targets. */
export type OwnPages = (request: IncomingMessage, response: ServerResponse) => boolean;

/** Starts a balancer without sticky sessions before listeners on loopback. */
export async function startBalancer(ports: readonly number[], ownPages?: OwnPages): Promise<Balancer> {
  const counts = ports.map(() => 0);
  const excluded = new Set<number>();
  let next = 0;
  const choose = () => {
    const places = ports.flatMap((_, place) => (excluded.has(place) ? [] : [place]));
    const place = places[next % places.length] ?? 0;
    next += 1;
    counts[place] = (counts[place] ?? 0) + 1;
    return { host: '127.0.0.1', port: ports[place] ?? 0 };
  };
  const server = createServer((request, response) => {
    if (ownPages?.(request, response) === true) return;
    const { method, url: path, headers } = request;
    const outgoing = httpRequest({ ...choose(), method, path, headers, agent: false }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      response.flushHeaders();
      answer.on('error', () => response.destroy());
      answer.pipe(response);
    });
    outgoing.on('error', () => response.destroy());
    response.once('close', () => outgoing.destroy());
    request.pipe(outgoing);
  });
  server.on('upgrade', (request, socket) => {
    const target = connect(choose());
    for (const [from, to] of [
      [socket, target],
      [target, socket],
    ] as const) {
      from.on('error', () => to.destroy());
      from.on('close', () => to.destroy());
    }
    target.write(headOf(request));
    socket.pipe(target).pipe(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const stop = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  const exclude = (place: number, isExcluded: boolean) =>
    void (isExcluded ? excluded.add(place) : excluded.delete(place));
  return { url: `http://127.0.0.1:${port}`, counts, exclude, stop };
}

function headOf({ method, url, rawHeaders }: IncomingMessage): string {
  const lines = [`${method} ${url} HTTP/1.1`];
  for (let i = 0; i < rawHeaders.length; i += 2) lines.push(`${rawHeaders[i]}: ${rawHeaders[i + 1]}`);
  return `${lines.join('\r\n')}\r\n\r\n`;
}
