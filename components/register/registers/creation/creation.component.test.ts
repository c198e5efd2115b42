import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sha256Hex } from '#core/crypto/hash.ts';
import { encodeBase64 } from '#core/encoding/base64.ts';
import { manualClock } from '#kit/clock/clock.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { testKey } from '../../testing/keys.ts';
import { startTestRegister, type TestRegister } from '../../testing/register.ts';

const owner = testKey(1);
const other = testKey(2);

interface AttestationToSign {
  readonly attestationData: { readonly role: string; readonly subject: string };
  readonly dataToSign: string;
}

function attest({ attestationData, dataToSign }: AttestationToSign, key = owner) {
  const signature = encodeBase64(key.signer.signDigest(Buffer.from(dataToSign, 'hex')));
  return { attestationData, publicKey: key.publicKey, algorithm: key.algorithm, signature };
}

describe('creating a register', () => {
  let register: TestRegister;
  const clock = manualClock(Date.UTC(2026, 10, 21, 12));
  beforeAll(async () => {
    register = await startTestRegister('creation', { clock });
  });
  afterAll(() => register.stop());

  async function initiate(body: object = {}, token = 'admin') {
    const owners = [{ walletAddress: owner.walletAddress }];
    return register.call('POST', '/api/registers/initiate', {
      token,
      body: { title: 'Loans', owners, ...body },
    });
  }

  const finalize = (body: object, token = 'admin') =>
    register.call('POST', '/api/registers/finalize', { token, body });

  it('seals docket 0 of a register attested by an external key', async () => {
    const begun = await initiate({ description: 'of money' });
    expect(begun.status).toBe(201);
    const { id, nonce, attestationsToSign } = begun.body;
    expect(id).toMatch(/^[0-9a-f]{32}$/);
    const done = await finalize({
      registerId: id,
      nonce,
      signedAttestations: attestationsToSign.map((one: AttestationToSign) => attest(one)),
    });
    expect(done.status).toBe(200);
    expect(done.body).toMatchObject({ registerId: id, status: 'created', genesisDocketId: '0' });
    const checking = await register.call('GET', `/api/registers/${id}`, { token: 'admin' });
    expect(checking.body).toMatchObject({ status: 'Checking', height: 0 });
    await waitFor(() => register.validators.pooled(id).length > 0);
    await register.seal(id);
    const online = await register.call('GET', `/api/registers/${id}`, { token: 'admin' });
    expect(online.body).toMatchObject({ status: 'Online', height: 1, transactionCount: 1, sandbox: false });
    const docket = await register.call('GET', `/api/registers/${id}/dockets/0`, { token: 'admin' });
    const { hash, previousHash, timestamp, validatorAddress, transactionIds, isGenesis } = docket.body;
    expect(previousHash).toBe('0'.repeat(64));
    expect(isGenesis).toBe(true);
    expect(transactionIds).toEqual([done.body.genesisTransactionId]);
    expect(hash).toBe(
      sha256Hex([id, '0', previousHash, timestamp, validatorAddress, ...transactionIds].join('|')),
    );
    const genesis = await register.call('GET', `/api/registers/${id}/transactions/${transactionIds[0]}`, {
      token: 'admin',
    });
    expect(genesis.body).toMatchObject({
      transactionType: 'Genesis',
      status: 'confirmed',
      docketId: '0',
      bound: true,
    });
  });

  it('refuses a wrong nonce, a wrong signature and a missing owner, and repeats the answer', async () => {
    const { registerId, nonce, attestationsToSign } = (await initiate()).body;
    const signed = attestationsToSign.map((one: AttestationToSign) => attest(one));
    const wrongNonce = await finalize({ registerId, nonce: 'x', signedAttestations: signed });
    expect([wrongNonce.status, wrongNonce.body.code]).toEqual([401, 'ATTESTATION_INVALID']);
    const forged = attestationsToSign.map((one: AttestationToSign) => attest(one, other));
    const wrongSignature = await finalize({ registerId, nonce, signedAttestations: forged });
    expect([wrongSignature.status, wrongSignature.body.code]).toEqual([401, 'ATTESTATION_INVALID']);
    const nobody = await finalize({ registerId, nonce, signedAttestations: [] });
    expect([nobody.status, nobody.body.code]).toEqual([400, 'OWNER_ATTESTATION_MISSING']);
    const first = await finalize({ registerId, nonce, signedAttestations: signed });
    const second = await finalize({ registerId, nonce, signedAttestations: signed });
    expect([first.status, second.status]).toEqual([200, 200]);
    expect(second.body).toEqual(first.body);
    const late = await finalize({ registerId, nonce: 'x', signedAttestations: signed });
    expect(late.status).toBe(409);
  });

  it('refuses after the expiry, and after five wrong nonces', async () => {
    const begun = (await initiate()).body;
    clock.advance(300_000);
    const late = await finalize({ registerId: begun.registerId, nonce: begun.nonce, autoAttest: true });
    expect([late.status, late.body.code]).toEqual([410, 'REGISTRATION_EXPIRED']);
    const guessed = (await initiate()).body;
    for (let count = 0; count < 5; count += 1) {
      expect((await finalize({ registerId: guessed.registerId, nonce: 'guess' })).status).toBe(401);
    }
    const spent = await finalize({ registerId: guessed.registerId, nonce: guessed.nonce, autoAttest: true });
    expect(spent.status).toBe(410);
  });

  it('refuses an anonymous caller, a user, and an administrator who requests a system register', async () => {
    const body = { title: 'x', owners: [{ walletAddress: owner.walletAddress }] };
    expect((await register.call('POST', '/api/registers/initiate', { body })).status).toBe(401);
    expect((await initiate({}, 'user')).status).toBe(403);
    expect((await initiate({ purpose: 'System' })).status).toBe(403);
    expect((await initiate({ purpose: 'System' }, 'system')).status).toBe(201);
  });

  it('hides registrations and registers from other organisations', async () => {
    const { registerId, nonce } = (await initiate()).body;
    expect((await finalize({ registerId, nonce, autoAttest: true }, 'stranger')).status).toBe(404);
    const id = await register.createRegister('Hidden');
    expect((await register.call('GET', `/api/registers/${id}`, { token: 'stranger' })).status).toBe(404);
    const list = await register.call('GET', '/api/registers', { token: 'stranger' });
    expect(list.body.items).toEqual([]);
    const own = await register.call('GET', '/api/registers?pageSize=1', { token: 'user' });
    expect(own.body).toMatchObject({ page: 1, pageSize: 1 });
    expect(own.body.items[0].id).toBe(id);
    const count = await register.call('GET', '/api/registers/stats/count', { token: 'user' });
    expect(count.body.count).toBe(own.body.totalCount);
    expect(count.body.byPurpose.General).toBe(own.body.totalCount);
  });

  it('refuses malformed bodies', async () => {
    const bad = [
      { title: '' },
      { title: 'a'.repeat(129) },
      { title: 'a\u0000b' },
      { owners: [{ walletAddress: 'nobody' }] },
      { policy: { consensus: { maxTransactionsPerDocket: 0 } } },
      { additionalAdmins: [{ walletAddress: owner.walletAddress }] },
      { purpose: 'Other' },
      { description: 'a\u0000b' },
      { title: '\ud800' },
      { metadata: { a: '\u0000' } },
      { owners: [{ walletAddress: owner.walletAddress, userId: '\u0000' }] },
      { policy: { version: 2 } },
    ];
    for (const body of bad) expect((await initiate(body)).status, JSON.stringify(body)).toBe(400);
    expect((await register.call('GET', '/api/registers?pageSize=0', { token: 'admin' })).status).toBe(400);
    expect((await register.call('GET', '/api/registers/none', { token: 'admin' })).body.code).toBe(
      'REGISTER_NOT_FOUND',
    );
  });

  it('answers 502 while no validator proves its key, and succeeds afterwards', async () => {
    const { registerId, nonce, attestationsToSign } = (await initiate()).body;
    const signedAttestations = attestationsToSign.map((one: AttestationToSign) => attest(one));
    register.validators.down = true;
    const refused = await finalize({ registerId, nonce, signedAttestations });
    register.validators.down = false;
    expect([refused.status, refused.body.code]).toEqual([502, 'VALIDATOR_UNAVAILABLE']);
    expect((await finalize({ registerId, nonce, signedAttestations })).status).toBe(200);
  });

  it('repeats an initiate by Idempotency-Key and refuses another body under it', async () => {
    const owners = [{ walletAddress: owner.walletAddress }];
    const headers = { 'idempotency-key': 'one' };
    const send = (title: string) =>
      register.call('POST', '/api/registers/initiate', { token: 'admin', headers, body: { title, owners } });
    const first = await send('Once');
    expect((await send('Once')).body).toEqual(first.body);
    expect((await send('Twice')).body.code).toBe('IDEMPOTENCY_KEY_REUSED');
  });
});
