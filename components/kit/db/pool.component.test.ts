import { mkdtempSync, rmSync } from 'node:fs';
import { createConnection, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { describe, expect, it, onTestFinished } from 'vitest';
import { testDatabase } from '#kit/testing/database.ts';
import { unavailable } from './pool.ts';

const socketName = '.s.PGSQL.5432';

/** A proxy before PostgreSQL that cuts the connection once a client has sent `text`, or a number of bytes after it. */
async function cutting(url: string, text: string, bytesAfter: number): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'chy-cut-'));
  const address = new URL(url);
  const target = join(address.searchParams.get('host') ?? '', socketName);
  const server = createServer((client) => {
    const upstream = createConnection(target);
    forward(client, upstream, { text, bytesAfter });
    upstream.pipe(client);
    for (const socket of [client, upstream]) socket.on('error', () => undefined);
  });
  await new Promise<void>((resolve) => server.listen(join(directory, socketName), resolve));
  onTestFinished(async () => {
    await new Promise((resolve) => server.close(resolve));
    rmSync(directory, { recursive: true, force: true });
  });
  address.searchParams.set('host', directory);
  return address.href;
}

function forward(
  client: Socket,
  upstream: Socket,
  cut: { readonly text: string; readonly bytesAfter: number },
) {
  let left: number | undefined;
  client.on('data', (chunk) => {
    if (left === undefined && chunk.includes(cut.text)) left = cut.bytesAfter;
    else if (left !== undefined) left -= chunk.length;
    if (left === undefined || left > 0) upstream.write(chunk);
    if (left === undefined || left > 0) return;
    client.destroy();
    upstream.destroy();
  });
}

async function copyMuch(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined);
  await client.connect();
  try {
    await client.query('create temp table much (line text)');
    const stream = client.query(copyFrom('copy much from stdin'));
    for (let part = 0; part < 16; part += 1) stream.write(`${'x'.repeat(65_536)}\n`);
    stream.end();
    await finished(stream);
  } finally {
    await client.end();
  }
}

describe('errors that mean that PostgreSQL is away', () => {
  it.each([
    ['when COPY is requested', 'copy much', 0],
    ['with the first rows', 'copy much', 1],
    ['amid the rows', 'copy much', 300_000],
    ['before anything', 'create temp', 0],
  ])('a connection that is cut %s', async (_when, text, bytesAfter) => {
    const url = await testDatabase('cut');
    const error: unknown = await copyMuch(await cutting(url, text, bytesAfter)).catch(
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(Error);
    expect(unavailable(error), String(error)).toMatchObject({
      kind: 'unavailable',
      retryAfterSeconds: 1,
      cause: error,
    });
    await copyMuch(url);
  });

  it('a closed pool, and a server that does not exist', async () => {
    const url = await testDatabase('cut');
    const pool = new pg.Pool({ connectionString: url });
    await pool.end();
    const nowhere = new pg.Pool({ connectionString: 'postgres://nobody@localhost/x?host=/nowhere' });
    for (const closed of [pool, nowhere]) {
      const error: unknown = await closed.connect().catch((thrown: unknown) => thrown);
      expect(unavailable(error), String(error)).toBeDefined();
    }
    await nowhere.end();
  });

  it('a statement without an answer in the time of its query', async () => {
    const pool = new pg.Pool({ connectionString: await testDatabase('cut') });
    const query = { text: 'select pg_sleep(2)', query_timeout: 20 };
    const error: unknown = await pool.query(query).catch((thrown: unknown) => thrown);
    expect(unavailable(error), String(error)).toBeDefined();
    await pool.end();
  });

  it('no other error, of a statement or of this code', async () => {
    const client = new pg.Client({ connectionString: await testDatabase('cut') });
    await client.connect();
    const wrong: unknown = await client.query('select 1 / 0').catch((thrown: unknown) => thrown);
    const stream = client.query(copyFrom('copy pg_class from stdin'));
    stream.end('nonsense\n');
    const refused: unknown = await finished(stream).catch((thrown: unknown) => thrown);
    await client.end();
    const ours = [
      new TypeError('x is not a function'),
      new RangeError('offset'),
      new Error('unexpected'),
      'text',
    ];
    for (const error of [wrong, refused, ...ours]) expect(unavailable(error), String(error)).toBeUndefined();
  });
});
