import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { encodeBase64 } from '#core/encoding/base64.ts';
import { parseRecord } from '#core/ledger/record.ts';
import { consumePage } from '#kit/events/consumer.ts';
import { buildDocket } from '../../testing/build-docket.ts';
import { testKey } from '../../testing/keys.ts';
import { startTestRegister, type TestRegister } from '../../testing/register.ts';
import { transaction } from '../../testing/sealed.ts';
import { participantKeysOf } from './record.ts';
import { revocationConsumption } from './revocations.ts';

const [first, second, third] = [testKey(1), testKey(2), testKey(3)];
const entry = ({ walletAddress, publicKey, algorithm }: ReturnType<typeof testKey>) => ({
  walletAddress,
  publicKey,
  algorithm,
});

describe('participants', () => {
  let register: TestRegister;
  let registerId: string;
  beforeAll(async () => {
    register = await startTestRegister('participants');
    registerId = await register.createRegister();
  });
  afterAll(() => register.stop());

  const record = (
    key: ReturnType<typeof testKey>,
    payload: object,
    type: 'Participant' | 'Action' = 'Participant',
  ) => transaction({ registerId, key, payload, type, metadata: { Type: type } });
  const publish = async (...rows: ReturnType<typeof record>[]) => {
    const bundle = buildDocket(await register.state(registerId), rows, register.members);
    expect(await register.ledger.writeDocket(bundle)).toMatchObject({ outcome: 'stored' });
  };
  const resolve = async (walletAddresses: unknown, more: object = {}, token = 'admin') =>
    register.call('POST', `/api/registers/${registerId}/participants/resolve-public-keys`, {
      token,
      body: { walletAddresses, ...more },
    });

  it('resolves published keys until they are revoked', async () => {
    const addresses = [first, second, third, first].map(({ walletAddress }) => walletAddress);
    expect((await resolve(addresses)).body).toEqual({
      resolved: {},
      notFound: addresses.slice(0, 3),
      revoked: [],
    });
    await publish(
      record(first, { participantId: 'p-1', addresses: [entry(first)] }),
      record(second, { participantId: 'p-2', status: 'Deprecated', addresses: [entry(second)] }),
    );
    const known = await resolve(addresses);
    expect(known.body).toEqual({
      resolved: {
        [first.walletAddress]: { ...entry(first), participantId: 'p-1', status: 'Active' },
        [second.walletAddress]: { ...entry(second), participantId: 'p-2', status: 'Deprecated' },
      },
      notFound: [third.walletAddress],
      revoked: [],
    });
    expect((await resolve(addresses, { algorithm: 'NISTP256' })).body.notFound).toHaveLength(3);
    await publish(record(first, { participantId: 'p-1', status: 'Revoked', addresses: [entry(first)] }));
    const later = (await resolve(addresses)).body;
    expect([later.revoked, Object.keys(later.resolved)]).toEqual([
      [first.walletAddress],
      [second.walletAddress],
    ]);
    await publish(
      record(first, { participantId: 'p-1', status: 'Deprecated', addresses: [entry(first)] }),
      record(first, { participantId: 'p-9', n: 2, addresses: [entry(first)] }),
    );
    expect((await resolve([first.walletAddress])).body.resolved[first.walletAddress]).toMatchObject({
      participantId: 'p-9',
      status: 'Active',
    });
  });

  it('accepts no key for the address of another participant', async () => {
    const before = (await resolve([second.walletAddress, third.walletAddress])).body;
    const stolen = { ...entry(second), publicKey: third.publicKey };
    await publish(
      record(third, { participantId: 'p-2', status: 'Revoked', addresses: [entry(second)] }),
      record(third, { participantId: 'p-2', addresses: [stolen] }),
      record(third, { participantId: 'p-3', addresses: [{ ...entry(third), publicKey: first.publicKey }] }),
      record(third, { participantId: 'p-3', addresses: [entry(third)] }, 'Action'),
    );
    expect((await resolve([second.walletAddress, third.walletAddress])).body).toEqual(before);
  });

  it('seals malformed records, and takes no keys from them', async () => {
    const odd = [
      {},
      { participantId: 'x', addresses: [] },
      { participantId: 'x\u0000', addresses: [entry(third)] },
      { participantId: 'x', status: 'Gone', addresses: [entry(third)] },
      { participantId: 'x', addresses: [{ ...entry(third), algorithm: 'ED448' }] },
      { participantId: 'x', addresses: [{ ...entry(third), publicKey: '!' }] },
      { participantId: 'x', addresses: [{ ...entry(third), publicKey: encodeBase64(new Uint8Array(32)) }] },
      { participantId: 'x', addresses: Array.from({ length: 11 }, () => entry(third)) },
      { participantId: 5, addresses: [entry(third)] },
    ];
    const rows = odd.map((payload, n) => record(third, { ...payload, n }));
    for (const row of rows) expect(participantKeysOf(parseRecord(row.record), row.payload)).toEqual([]);
    const [any] = rows;
    expect(any && participantKeysOf(parseRecord(any.record), Buffer.from('not JSON'))).toEqual([]);
    await publish(...rows);
    expect((await resolve([third.walletAddress])).body.notFound).toEqual([third.walletAddress]);
  });

  it('keys that the wallet service has revoked are revoked on every register, for good', async () => {
    const other = await register.createRegister('Other');
    const [revoked, kept] = [testKey(4), testKey(5)];
    const addresses = [revoked, kept].map(({ walletAddress }) => walletAddress);
    const publishAt = async (id: string, n: number) => {
      const rows = [revoked, kept].map((key, at) =>
        transaction({
          registerId: id,
          key,
          payload: { participantId: `p-${at}`, n, addresses: [entry(key)] },
          type: 'Participant',
          metadata: { Type: 'Participant' },
        }),
      );
      const bundle = buildDocket(await register.state(id), rows, register.members);
      expect(await register.ledger.writeDocket(bundle)).toMatchObject({ outcome: 'stored' });
    };
    const resolveAt = async (id: string) => {
      const path = `/api/registers/${id}/participants/resolve-public-keys`;
      const { body } = await register.call('POST', path, {
        token: 'admin',
        body: { walletAddresses: addresses },
      });
      return [Object.keys(body.resolved), body.revoked];
    };
    for (const id of [registerId, other]) await publishAt(id, 1);
    expect(await resolveAt(other)).toEqual([addresses, []]);

    const event = {
      derivedKeyId: '0199b5ab-0000-7000-8000-000000000001',
      walletAddress: revoked.walletAddress,
      did: `did:platform:w:${revoked.walletAddress}`,
      revokedAt: '2026-11-21T12:00:00.000Z',
    };
    const applied: number[] = [];
    const consume = (position: string) =>
      consumePage(
        revocationConsumption({
          db: register.database,
          log: { read: async () => ({ events: [event, event], position, complete: true }) },
          onApplied: (count) => applied.push(count),
        }),
        new AbortController().signal,
      );
    for (const position of ['1.1', '1.2', '1.2']) await consume(position);
    expect(applied).toEqual([2, 2]);
    await publishAt(other, 2);
    for (const id of [registerId, other]) {
      expect(await resolveAt(id)).toEqual([[kept.walletAddress], [revoked.walletAddress]]);
    }
  });

  it('refuses malformed requests and unknown callers', async () => {
    expect((await resolve([])).status).toBe(400);
    expect((await resolve(['x'])).status).toBe(400);
    expect((await resolve([first.walletAddress], { algorithm: 'x' })).status).toBe(400);
    expect((await resolve(Array.from({ length: 201 }, () => first.walletAddress))).status).toBe(400);
    expect((await resolve([first.walletAddress], {}, 'stranger')).status).toBe(404);
  });
});
