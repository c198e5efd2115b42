import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  basicConstraints,
  chain,
  ecKey,
  keyUsage,
  chainTimeMs as startMs,
} from '#core/trust/testing/chains.ts';
import {
  distributionPoint,
  distributionPoints,
  type ListSpec,
  listDer,
} from '#core/trust/testing/revocation.ts';
import { type ManualClock, manualClock } from '#kit/clock/clock.ts';
import { createOutbound, OutboundError } from '#kit/outbound/outbound.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { RevocationLists } from './revocation-lists.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const [leafKey, issuerKey, otherKey] = [ecKey('P-256'), ecKey('P-256'), ecKey('P-256')];
const address = 'http://lists.example/1.crl';

/** A certificate whose lists are at some addresses, and its issuer. */
function certified(...addresses: readonly string[]) {
  const point = distributionPoints(distributionPoint(addresses));
  const changes = { 0: { extensions: [basicConstraints(false), keyUsage(0), point] } };
  const { path, anchor } = chain('lists', [leafKey, issuerKey], changes);
  return [path[0] ?? anchor, anchor] as const;
}

const [leaf, issuer] = certified(address);
const revoked = [{ serial: 1 }];
const listOf = (change: Partial<ListSpec> = {}) =>
  listDer({ issuer: issuer.subject, signer: issuerKey, thisUpdateMs: startMs, ...change });

describe('lists of other authorities', () => {
  let clock: ManualClock;
  let bodies: Map<string, Buffer>;
  let asked: string[];
  let lists: RevocationLists;
  beforeEach(() => {
    clock = manualClock(startMs);
    bodies = new Map();
    asked = [];
    const { log } = testRuntime('service-credential', { clock });
    const send = async (uri: string) => {
      asked.push(uri);
      const body = bodies.get(uri);
      if (body === undefined) throw new OutboundError('unreachable');
      return { status: 200, headers: {}, body };
    };
    lists = new RevocationLists({ clock, log, outbound: { send } });
  });
  const verdict = () => lists.verdictOf(leaf, issuer);
  const refresh = () => lists.refreshing().run(new AbortController().signal);

  it('are read once for many verifications, and used until the next update', async () => {
    bodies.set(address, listOf({ nextUpdateMs: startMs + hourMs }));
    expect(await Promise.all([verdict(), verdict(), verdict()])).toEqual(['Good', 'Good', 'Good']);
    clock.advance(hourMs - 1_000);
    expect([await verdict(), asked.length]).toEqual(['Good', 1]);
    clock.advance(2_000);
    expect([await verdict(), asked.length]).toEqual(['Unavailable', 2]);
  });

  it('are read again in the background after an hour or half of their life, whichever is less', async () => {
    bodies.set(address, listOf({ nextUpdateMs: startMs + 24 * hourMs }));
    expect(await verdict()).toBe('Good');
    await refresh();
    expect(asked).toHaveLength(1);
    bodies.set(
      address,
      listOf({ thisUpdateMs: startMs + 1_000, nextUpdateMs: startMs + 2 * hourMs, entries: revoked }),
    );
    clock.advance(hourMs);
    expect(await verdict()).toBe('Good');
    await refresh();
    expect([await verdict(), asked.length]).toEqual(['Revoked', 2]);
    clock.advance(30 * minuteMs);
    await refresh();
    expect(asked).toHaveLength(3);
  });

  it('stay in use while their host fails, and are not replaced by earlier ones', async () => {
    const nextUpdateMs = startMs + 24 * hourMs;
    bodies.set(address, listOf({ nextUpdateMs, entries: revoked }));
    expect(await verdict()).toBe('Revoked');
    bodies.delete(address);
    clock.advance(hourMs);
    await refresh();
    expect([await verdict(), asked.length]).toEqual(['Revoked', 2]);
    bodies.set(address, listOf({ thisUpdateMs: startMs - 1_000, nextUpdateMs }));
    clock.advance(hourMs);
    await refresh();
    expect([await verdict(), asked.length]).toEqual(['Revoked', 3]);
    bodies.set(address, listOf({ thisUpdateMs: startMs + 1_000, nextUpdateMs }));
    clock.advance(minuteMs);
    await refresh();
    expect(await verdict()).toBe('Good');
  });

  it('that fail are not asked for again at once', async () => {
    expect([await verdict(), await verdict(), asked.length]).toEqual(['Unavailable', 'Unavailable', 1]);
    bodies.set(address, listOf());
    clock.advance(29_999);
    expect([await verdict(), asked.length]).toEqual(['Unavailable', 1]);
    clock.advance(1);
    expect([await verdict(), asked.length]).toEqual(['Good', 2]);
  });

  it('of another issuer, key or time say nothing', async () => {
    for (const wrong of [
      listOf({ signer: otherKey, entries: revoked }),
      listOf({ issuer: leaf.subject }),
      listOf({ thisUpdateMs: startMs - 2_000, nextUpdateMs: startMs - 1_000 }),
      Buffer.from('<html>'),
    ]) {
      bodies.set(address, wrong);
      expect(await verdict()).toBe('Unavailable');
      clock.advance(minuteMs);
    }
  });

  it('have several addresses, of which three at most are asked', async () => {
    const addresses = [1, 2, 3, 4].map((number) => `https://lists.example/${number}.crl`);
    const [several] = certified(...addresses);
    bodies.set(addresses[3] ?? '', listOf());
    expect(await lists.verdictOf(several, issuer)).toBe('Unavailable');
    expect(asked).toEqual(addresses.slice(0, 3));
    bodies.set(addresses[2] ?? '', listOf({ entries: revoked }));
    clock.advance(minuteMs);
    expect(await lists.verdictOf(several, issuer)).toBe('Revoked');
    const [none] = certified('ldap://lists.example/cn=1');
    expect(await lists.verdictOf(none, issuer)).toBe('Unavailable');
  });

  it('are dropped after a day without use, and beyond 64 the one that was used least lately', async () => {
    bodies.set(address, listOf({ nextUpdateMs: startMs + 100 * hourMs }));
    await verdict();
    clock.advance(24 * hourMs);
    await refresh();
    expect([await verdict(), asked.length]).toEqual(['Good', 2]);
    for (let number = 0; number < 64; number += 1) {
      const uri = `http://lists.example/many/${number}`;
      bodies.set(uri, listOf({ nextUpdateMs: startMs + 100 * hourMs }));
      await lists.verdictOf(certified(uri)[0], issuer);
      if (number === 62) expect([await verdict(), asked.length]).toEqual(['Good', 65]);
    }
    expect([await verdict(), asked.length]).toEqual(['Good', 66]);
    await lists.verdictOf(certified('http://lists.example/many/0')[0], issuer);
    expect(asked).toHaveLength(67);
  });
});

describe('hostile hosts of lists', () => {
  const mostBytes = 4 * 1024 * 1024;
  const answers: Readonly<Record<string, (response: ServerResponse) => void>> = {
    '/list': (response) => response.end(listOf({ entries: revoked })),
    '/absent': (response) => response.writeHead(404).end(listOf()),
    '/moved': (response) => response.writeHead(302, { location: '/list' }).end(),
    '/endless': (response) => {
      const write = () => {
        if (response.destroyed || response.socket === null) return;
        sentBytes += 65_536;
        if (response.write(Buffer.alloc(65_536, 0x30))) setImmediate(write);
        else response.once('drain', write);
      };
      write();
    },
  };
  let sentBytes: number;
  let server: Server;
  let origin: string;
  beforeEach(async () => {
    sentBytes = 0;
    server = createServer((request, response) => answers[request.url ?? '']?.(response));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterEach(() => new Promise((resolve) => server.close(resolve)));

  async function verdictAt(path: string, allowed: readonly string[]) {
    const outbound = createOutbound({ allowed });
    const clock = manualClock(startMs);
    const { log } = testRuntime('service-credential', { clock });
    const [one] = certified(`${origin}${path}`);
    const verdict = await new RevocationLists({ clock, log, outbound }).verdictOf(one, issuer);
    await outbound.close();
    return verdict;
  }

  it('reach no private address, endless bodies end, and redirects are not followed', async () => {
    expect(await verdictAt('/list', [origin])).toBe('Revoked');
    expect(await verdictAt('/list', [])).toBe('Unavailable');
    expect(await verdictAt('/absent', [origin])).toBe('Unavailable');
    expect(await verdictAt('/moved', [origin])).toBe('Unavailable');
    expect(await verdictAt('/endless', [origin])).toBe('Unavailable');
    expect(sentBytes).toBeLessThan(4 * mostBytes);
  });
});
