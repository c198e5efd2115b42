import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildCertificate, buildDocket } from '../../testing/build-docket.ts';
import { startTestRegister, type TestRegister } from '../../testing/register.ts';
import { bodyOf, transaction } from '../../testing/sealed.ts';
import type { DocketBundle } from '../dockets/docket.ts';

describe('two certificates for one height', () => {
  let register: TestRegister;
  beforeAll(async () => {
    register = await startTestRegister('conflicts', { members: 4 });
  });
  afterAll(() => register.stop());

  const status = async (id: string) =>
    (await register.call('GET', `/api/registers/${id}`, { token: 'admin' })).body.status;
  const resume = (id: string, token = 'system') =>
    register.call('POST', `/api/admin/registers/${id}/resume-halted`, { token });
  const post = (id: string, bundle: DocketBundle) =>
    register.call('POST', `/api/registers/${id}/dockets`, { token: 'validator', body: bodyOf(bundle) });
  const events = async (id: string) =>
    (
      await register.database.pool.query(
        "select data from outbox where kind = 'RegisterStatusChanged' and key = $1 order by sequence",
        [id],
      )
    ).rows.map((row) => row.data.status);

  async function docketsOf(id: string) {
    const state = await register.state(id);
    const build = (n: number) => {
      const payload = { n, height: state.height };
      return buildDocket(state, [transaction({ registerId: id, payload })], register.members);
    };
    return [build(1), build(2)] as const;
  }

  it('halts the register until an operator resumes it', async () => {
    const id = await register.createRegister();
    const [stored, other] = await docketsOf(id);
    expect((await post(id, stored)).status).toBe(201);
    const divergent = await post(id, other);
    expect([divergent.status, divergent.body.code]).toEqual([409, 'DOCKET_DIVERGENCE']);
    expect(await status(id)).toBe('Halted');
    expect(await events(id)).toEqual(['Halted']);
    const [next] = await docketsOf(id);
    const refused = await post(id, next);
    expect([refused.status, refused.body.code]).toEqual([409, 'REGISTER_HALTED']);
    // A repetition of the same docket is not a new conflict, and does not end the halt.
    expect((await post(id, stored)).status).toBe(200);
    const submitted = await register.call('POST', `/api/registers/${id}/transactions`, {
      token: 'admin',
      body: { senderAddress: 'x', payload: 'MQ==' },
    });
    expect([submitted.status, submitted.body.code]).toEqual([409, 'REGISTER_HALTED']);
    const path = `/api/admin/registers/${id}/conflicts`;
    expect((await register.call('GET', path, { token: 'admin' })).status).toBe(403);
    expect((await register.call('GET', path, { token: 'system' })).body).toMatchObject({
      status: 'Halted',
      conflicts: [
        {
          docketNumber: 1,
          hash: other.header.hash,
          storedHash: stored.header.hash,
          header: { timestamp: other.header.timestamp },
          certificate: { docketHash: other.header.hash },
        },
      ],
    });
    expect((await resume(id, 'admin')).status).toBe(403);
    const resumed = await resume(id);
    expect(resumed.body).toMatchObject({
      status: 'Online',
      conflicts: [{ docketNumber: 1, hash: other.header.hash }],
    });
    expect(await status(id)).toBe('Online');
    expect((await post(id, next)).status).toBe(201);
    expect((await post(id, other)).status).toBe(409);
    expect(await status(id)).toBe('Online');
    expect(await events(id)).toEqual(['Halted', 'Online']);
    const twice = await resume(id);
    expect([twice.status, twice.body.code]).toEqual([409, 'REGISTER_NOT_HALTED']);
  });

  it('does not halt for a docket that no quorum certified', async () => {
    const id = await register.createRegister();
    const [stored, other] = await docketsOf(id);
    expect((await post(id, stored)).status).toBe(201);
    const { members } = register;
    const { networkId } = await register.state(id);
    const certificate = buildCertificate(other.header, members.slice(0, 2), { networkId, round: 0, members });
    expect((await post(id, { ...other, certificate })).status).toBe(409);
    const borrowed = { ...other, certificate: stored.certificate };
    expect((await post(id, borrowed)).status).toBe(409);
    const elsewhere = { ...other, certificate: { ...other.certificate, height: 2 } };
    expect((await post(id, elsewhere)).status).toBe(409);
    expect(await status(id)).toBe('Online');
  });

  it('halts for a certificate over different content under the same hash', async () => {
    const id = await register.createRegister();
    const [stored] = await docketsOf(id);
    expect((await post(id, stored)).status).toBe(201);
    const { members } = register;
    const { networkId } = await register.state(id);
    const header = { ...stored.header, merkleRoot: 'f'.repeat(64) };
    const certificate = buildCertificate(header, members, { networkId, round: 1, members });
    expect((await post(id, { ...stored, header, certificate })).status).toBe(409);
    expect(await status(id)).toBe('Halted');
  });

  it('is 404 for an unknown register', async () => {
    expect((await resume('a'.repeat(32))).status).toBe(404);
  });
});
