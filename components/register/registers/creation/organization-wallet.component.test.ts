import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { encodeBase64 } from '#core/encoding/base64.ts';
import { memberDid } from '#core/ledger/did.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { type TestKey, testKey } from '../../testing/keys.ts';
import { organizationId, startTestRegister, type TestRegister } from '../../testing/register.ts';

const wallet = testKey(20);
const derived = testKey(21);
const context = 'platform:register-attestation';

interface AttestationToSign {
  readonly attestationData: { readonly role: string; readonly subject: string };
  readonly dataToSign: string;
}

function attest({ attestationData, dataToSign }: AttestationToSign, key: TestKey) {
  const signature = encodeBase64(key.signer.signDigest(Buffer.from(dataToSign, 'hex')));
  return { attestationData, publicKey: key.publicKey, algorithm: key.algorithm, signature };
}

describe('a register of an organisation wallet', () => {
  let register: TestRegister;
  beforeAll(async () => {
    register = await startTestRegister('organization_wallet');
    register.wallets.ownByOrganization({ organizationId, key: wallet, derived, tokens: ['admin'] });
    register.wallets.own('system', testKey(22));
  });
  afterAll(() => register.stop());

  const initiate = (body: object, token = 'admin') =>
    register.call('POST', '/api/registers/initiate', { token, body: { title: 'Ours', ...body } });
  const finalize = (body: object, token = 'admin') =>
    register.call('POST', '/api/registers/finalize', { token, body });
  const owned = { owners: [{ walletAddress: wallet.walletAddress }] };

  it('requests the key that the wallet derives, and names the wallet to sign with', async () => {
    const { status, body } = await initiate(owned);
    expect(status).toBe(201);
    expect(body.attestationsToSign).toEqual([
      {
        walletId: wallet.walletAddress,
        derivationPath: context,
        walletAddress: derived.walletAddress,
        role: 'Owner',
        attestationData: {
          role: 'Owner',
          subject: memberDid(derived.walletAddress),
          registerId: body.registerId,
          registerName: 'Ours',
          grantedAt: expect.any(String),
        },
        dataToSign: expect.stringMatching(/^[0-9a-f]{64}$/),
      },
    ]);
  });

  it('attests automatically for a caller who may sign with that key, and seals the subject in the roster', async () => {
    const { registerId, nonce } = (await initiate(owned)).body;
    const done = await finalize({ registerId, nonce, autoAttest: true });
    expect(done.status).toBe(200);
    await waitFor(() => register.validators.pooled(registerId).length > 0);
    await register.seal(registerId);
    const online = await register.call('GET', `/api/registers/${registerId}`, { token: 'admin' });
    expect(online.body.status).toBe('Online');
    const { genesisTransactionId } = done.body;
    const genesis = await register.call(
      'GET',
      `/api/registers/${registerId}/transactions/${genesisTransactionId}`,
      { token: 'admin' },
    );
    const record = JSON.parse(Buffer.from(genesis.body.payload, 'base64').toString());
    expect(record.attestations).toMatchObject([
      { role: 'Owner', subject: memberDid(derived.walletAddress), publicKey: derived.publicKey },
    ]);
  });

  it('refuses a caller without the grant with 403, and leaves the registration as it is', async () => {
    const { registerId, nonce } = (await initiate(owned)).body;
    const refused = await finalize({ registerId, nonce, autoAttest: true }, 'user');
    expect([refused.status, refused.body.code]).toEqual([403, 'SENDER_NOT_AUTHORIZED']);
    expect((await finalize({ registerId, nonce, autoAttest: true })).status).toBe(200);
  });

  it('refuses the primary key of the wallet and the derived key of another one', async () => {
    const { registerId, nonce, attestationsToSign } = (await initiate(owned)).body;
    for (const key of [wallet, testKey(23)]) {
      const signedAttestations = attestationsToSign.map((one: AttestationToSign) => attest(one, key));
      const refused = await finalize({ registerId, nonce, signedAttestations });
      expect([refused.status, refused.body.code]).toEqual([401, 'ATTESTATION_INVALID']);
      expect(refused.body.subjects).toEqual([memberDid(derived.walletAddress)]);
    }
    const signedAttestations = attestationsToSign.map((one: AttestationToSign) => attest(one, derived));
    expect((await finalize({ registerId, nonce, signedAttestations })).status).toBe(200);
  });

  it('refuses a signature of the wallet service by a key that was not requested', async () => {
    const { registerId, nonce } = (await initiate(owned)).body;
    const { wallets } = register;
    wallets.ownByOrganization({ organizationId, key: wallet, derived: testKey(24), tokens: ['admin'] });
    const refused = await finalize({ registerId, nonce, autoAttest: true });
    wallets.ownByOrganization({ organizationId, key: wallet, derived, tokens: ['admin'] });
    expect([refused.status, refused.body.code]).toEqual([401, 'ATTESTATION_INVALID']);
  });

  it('the owner is the wallet of the token, else the organisation’s; without any it must be named', async () => {
    const ours = (await initiate({})).body.attestationsToSign;
    expect(ours).toMatchObject([{ walletAddress: derived.walletAddress, derivationPath: context }]);
    const theirs = (await initiate({}, 'system')).body.attestationsToSign;
    expect(theirs).toMatchObject([{ walletAddress: testKey(22).walletAddress }]);
    expect(theirs[0].derivationPath).toBeUndefined();
    const claimed = (await initiate({}, 'claimant')).body.attestationsToSign;
    expect(claimed).toMatchObject([{ walletAddress: testKey(25).walletAddress }]);
    const nobody = await initiate({}, 'stranger');
    expect([nobody.status, nobody.body.code]).toEqual([422, 'OWNER_WALLET_REQUIRED']);
  });

  it('accepts walletId for a wallet of the service, and one name for each member', async () => {
    const named = await initiate({ owners: [{ walletId: wallet.walletAddress }] });
    expect(named.body.attestationsToSign).toMatchObject([{ walletAddress: derived.walletAddress }]);
    const bad = [
      { owners: [{ walletId: 'no-such-wallet' }] },
      { owners: [{}] },
      { owners: [{ walletId: 'x', walletAddress: wallet.walletAddress }] },
      { ...owned, additionalAdmins: [{ walletAddress: derived.walletAddress }] },
    ];
    for (const body of bad) {
      expect((await initiate(body)).status, JSON.stringify(body)).toBe(400);
    }
  });
});
