import { randomBytes } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { checkEvidence, collectEvidence } from '../harness/evidence.ts';
import { createWallet, waitOnline } from '../harness/journey.ts';
import { installation } from '../harness/shared-system.ts';

const here = installation();
const context = 'platform:register-attestation';

const initiated = z.object({
  id: z.string(),
  nonce: z.string(),
  attestationsToSign: z
    .array(
      z.object({
        walletId: z.string(),
        walletAddress: z.string(),
        derivationPath: z.string().optional(),
        attestationData: z.object({ role: z.string(), subject: z.string() }).loose(),
        dataToSign: z.string(),
      }),
    )
    .length(1),
});
const signed = z.object({ signature: z.string(), publicKey: z.string(), algorithm: z.string() });

interface Organization {
  readonly id: string;
  readonly subdomain: string;
  /** of two administrators */
  readonly tokens: readonly [string, string];
}

/** An organisation with two signed-in administrators. */
async function createOrganization(): Promise<Organization> {
  const subdomain = `o-${randomBytes(5).toString('hex')}`;
  const root = here.token();
  const made = await here.api.expect(201, 'POST', '/api/organizations', {
    token: root,
    json: { name: 'An organisation', subdomain },
  });
  const { id } = z.object({ id: z.string() }).parse(made.body);
  const signInAdministrator = async (name: string) => {
    const account = { email: `${name}@${subdomain}.example`, password: 'a long enough phrase 42' };
    await here.api.expect(201, 'POST', `/api/organizations/${id}/users`, {
      token: root,
      json: { ...account, displayName: name, roles: ['Administrator'] },
    });
    const { body } = await here.api.expect(200, 'POST', '/api/auth/login', {
      json: { ...account, organizationSubdomain: subdomain },
    });
    return z.object({ access_token: z.string() }).parse(body).access_token;
  };
  return { id, subdomain, tokens: [await signInAdministrator('one'), await signInAdministrator('two')] };
}

async function createOrganizationWallet({ id, tokens }: Organization): Promise<{ walletAddress: string }> {
  const { body } = await here.api.expect(201, 'POST', '/api/wallets', {
    token: tokens[0],
    json: { title: 'The signing wallet', keyType: 'ED25519', organizationId: id },
  });
  return z.object({ walletAddress: z.string() }).parse(body);
}

describe('registers of an organisation wallet', () => {
  let organization: Organization;
  let other: Organization;
  let wallet: { walletAddress: string };
  let otherWallet: { walletAddress: string };

  beforeAll(async () => {
    organization = await createOrganization();
    other = await createOrganization();
    wallet = await createOrganizationWallet(organization);
    otherWallet = await createOrganizationWallet(other);
  });

  const initiate = async (json: object) => {
    const { body } = await here.api.expect(201, 'POST', '/api/registers/initiate', {
      token: organization.tokens[0],
      json: { title: 'Of the organisation', ...json },
    });
    const { id, nonce, attestationsToSign } = initiated.parse(body);
    const [toSign] = attestationsToSign;
    if (toSign === undefined) throw new Error('nothing to sign');
    return { id, nonce, toSign };
  };
  const owned = () => ({ owners: [{ walletAddress: wallet.walletAddress }] });
  const finalize = (json: object, token = organization.tokens[0]) =>
    here.api.send('POST', '/api/registers/finalize', { token, json });
  const codeOf = (answer: { status: number; body: unknown }) => [
    answer.status,
    (answer.body as { code?: string }).code,
  ];
  /** Signs an attestation with the key of the context of a wallet. */
  const attest = async (
    token: string,
    walletAddress: string,
    { attestationData, dataToSign }: { attestationData: object; dataToSign: string },
  ) => {
    const { body } = await here.api.expect(200, 'POST', `/api/wallets/${walletAddress}/sign`, {
      token,
      json: {
        data: Buffer.from(dataToSign, 'hex').toString('base64'),
        algorithm: 'ED25519',
        isPreHashed: true,
        derivationPath: context,
      },
    });
    return { attestationData, ...signed.parse(body) };
  };
  const rosterOf = async (registerId: string, txId: string) => {
    const path = `/api/registers/${registerId}/transactions/${txId}`;
    const { body } = await here.api.expect(200, 'GET', path, { token: organization.tokens[0] });
    const { payload } = z.object({ payload: z.string() }).parse(body);
    return JSON.parse(Buffer.from(payload, 'base64').toString()).attestations;
  };

  test('autoAttest: the register comes online, owned by the key that the wallet derives', async () => {
    const { id, nonce, toSign } = await initiate(owned());
    expect(toSign).toMatchObject({ walletId: wallet.walletAddress, derivationPath: context });
    expect(toSign.walletAddress).not.toBe(wallet.walletAddress);
    const subject = `did:platform:w:${toSign.walletAddress}`;
    expect(toSign.attestationData.subject).toBe(subject);
    const done = await finalize({ registerId: id, nonce, autoAttest: true });
    expect(done.status, JSON.stringify(done.body)).toBe(200);
    await waitOnline(here.api, organization.tokens[0], id);
    const online = await here.api.expect(200, 'GET', `/api/registers/${id}`, {
      token: organization.tokens[0],
    });
    expect(online.body).toMatchObject({ status: 'Online', height: 1 });
    const { genesisTransactionId } = z.object({ genesisTransactionId: z.string() }).parse(done.body);
    expect(await rosterOf(id, genesisTransactionId)).toMatchObject([{ role: 'Owner', subject }]);
    const evidence = await collectEvidence(here.api, organization.tokens[0], id);
    expect(checkEvidence(evidence)).toMatch(/^[0-9a-f]{64}$/);
  });

  test('without owners the organisation’s wallet is the owner; without any wallet one must be named', async () => {
    const { id, nonce, toSign } = await initiate({});
    expect(toSign).toMatchObject({ walletId: wallet.walletAddress, derivationPath: context });
    expect((await finalize({ registerId: id, nonce, autoAttest: true })).status).toBe(200);
    await waitOnline(here.api, organization.tokens[0], id);
    const poor = await createOrganization();
    const answer = await here.api.send('POST', '/api/registers/initiate', {
      token: poor.tokens[0],
      json: { title: 'Nobody’s' },
    });
    expect(codeOf(answer)).toEqual([422, 'OWNER_WALLET_REQUIRED']);
  });

  test('an Administrator without the grant is refused, and one with it succeeds', async () => {
    const { id, nonce } = await initiate(owned());
    const refused = await finalize({ registerId: id, nonce, autoAttest: true }, organization.tokens[1]);
    expect(codeOf(refused)).toEqual([403, 'SENDER_NOT_AUTHORIZED']);
    expect((await finalize({ registerId: id, nonce, autoAttest: true })).status).toBe(200);
  });

  test('the derived key of another wallet does not attest; the right one does, signed by hand', async () => {
    const { id, nonce, toSign } = await initiate(owned());
    const mine = await createWallet(here.api, organization.tokens[0], 'ED25519');
    const wrong = [
      await attest(other.tokens[0], otherWallet.walletAddress, toSign),
      await attest(organization.tokens[0], mine.walletAddress, toSign),
    ];
    for (const attestation of wrong) {
      const refused = await finalize({ registerId: id, nonce, signedAttestations: [attestation] });
      expect(codeOf(refused)).toEqual([401, 'ATTESTATION_INVALID']);
    }
    const right = await attest(organization.tokens[0], wallet.walletAddress, toSign);
    expect((await finalize({ registerId: id, nonce, signedAttestations: [right] })).status).toBe(200);
  });

  test('a wallet of another organisation cannot be attested for', async () => {
    const { id, nonce } = await initiate({ owners: [{ walletAddress: otherWallet.walletAddress }] });
    const refused = await finalize({ registerId: id, nonce, autoAttest: true });
    expect(codeOf(refused)).toEqual([403, 'SENDER_NOT_AUTHORIZED']);
  });

  test('a personal wallet attests with its own key', async () => {
    const mine = await createWallet(here.api, organization.tokens[0], 'ED25519');
    const { id, nonce, toSign } = await initiate({ owners: [{ walletId: mine.id }] });
    expect(toSign.walletAddress).toBe(mine.walletAddress);
    expect(toSign.derivationPath).toBeUndefined();
    expect((await finalize({ registerId: id, nonce, autoAttest: true })).status).toBe(200);
  });
});
