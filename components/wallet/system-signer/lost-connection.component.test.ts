import { mkdtempSync, rmSync } from 'node:fs';
import { createConnection, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openPool } from '#kit/db/pool.ts';
import { newRegister } from '../testing/consensus-messages.ts';
import { openFixture } from '../testing/fixture.ts';
import { createSignerStore, type GuardedBatch } from './store.ts';

const socketName = '.s.PGSQL.5432';
const answerTimeoutMs = 300;

/** What does not arrive any more on the connections of a host that vanished. */
type Lost = 'requests' | 'answers';

interface VanishingHost {
  readonly url: string;
  /** Connections that exist stay open and silent; later ones work. */
  vanish(lost: Lost): void;
}

/** A proxy before PostgreSQL. */
async function vanishingHost(url: string): Promise<VanishingHost> {
  const directory = mkdtempSync(join(tmpdir(), 'chy-lost-'));
  const address = new URL(url);
  const target = join(address.searchParams.get('host') ?? '', socketName);
  const silenced = new Map<Socket, Lost>();
  const clients = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = createConnection(target);
    clients.add(client);
    client.on('data', (chunk) => silenced.get(client) !== 'requests' && upstream.write(chunk));
    upstream.on('data', (chunk) => !silenced.has(client) && client.write(chunk));
    client.on('close', () => upstream.destroy());
    for (const socket of [client, upstream]) socket.on('error', () => undefined);
  });
  await new Promise<void>((resolve) => server.listen(join(directory, socketName), resolve));
  onTestFinished(async () => {
    for (const client of clients) client.destroy();
    await new Promise((resolve) => server.close(resolve));
    rmSync(directory, { recursive: true, force: true });
  });
  address.searchParams.set('host', directory);
  return {
    url: address.href,
    vanish: (lost) => {
      for (const client of clients) silenced.set(client, lost);
    },
  };
}

function batchOf(registerId: string, height: bigint): GuardedBatch {
  const digest = Buffer.alloc(32, Number(height));
  const messages = [{ step: 1, digest, signature: Buffer.alloc(64, 1) }] as const;
  return { registerId, validatorId: 'validator-0', height, round: 0, messages, firstStep: 1 };
}

for (const [lost, isTakenAgain] of [
  ['requests', true],
  ['answers', false],
] as const) {
  test(`signing continues on another connection when ${lost} of a silent one are lost`, async () => {
    const wallet = await openFixture('wallet_lost');
    onTestFinished(() => wallet.close());
    const host = await vanishingHost(wallet.url);
    const pool = openPool({ url: host.url, schema: 'wallet', log: wallet.runtime.log });
    onTestFinished(() => pool.end());
    const store = createSignerStore(pool, answerTimeoutMs);
    const [first, second] = [newRegister(), newRegister()];
    const epoch = await store.nextEpoch('validator-0');
    expect(await store.guard(batchOf(first, 1n), epoch)).toBe(true);

    host.vanish(lost);
    const unanswered = store.guard(batchOf(first, 2n), epoch).catch((error: unknown) => error);
    // The statement in flight holds the first message alone.
    await new Promise((resolve) => setImmediate(resolve));
    const waiting = store.guard(batchOf(second, 1n), epoch);
    expect(await unanswered).toMatchObject({ kind: 'unavailable' });
    expect(await waiting).toBe(true);

    expect(await store.guard(batchOf(first, 2n), epoch)).toBe(isTakenAgain);
    const { kept } = (await store.position({ registerId: first, validatorId: 'validator-0' })) ?? {};
    expect(kept).toEqual(batchOf(first, 2n).messages);
  });
}
