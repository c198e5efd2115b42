import { randomBytes, randomUUID } from 'node:crypto';
import { decodeJwt, importJWK, jwtVerify } from 'jose';
import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { encryptedPayload, fileReference } from '../harness/encrypted-payload.ts';
import {
  createRegister,
  createWallet,
  submitThroughRegister,
  type Tokens,
  type Wallet,
  waitConfirmed,
  waitOnline,
} from '../harness/journey.ts';
import { installation } from '../harness/shared-system.ts';

const here = installation();
const base = '/api/v1/wallet';

const holderKeys = z.object({
  holderJwk: z.looseObject({ kty: z.string(), alg: z.string() }),
  walletAddress: z.string(),
});

describe('a citizen', () => {
  const account = { email: `${randomUUID()}@example.org`, password: randomBytes(18).toString('base64url') };
  let platform = '';
  let consumer = '';
  let wallet: Wallet;

  beforeAll(async () => {
    await here.api.expect(201, 'POST', `/api/organizations/${decodeJwt(here.token())['org_id']}/users`, {
      token: here.token(),
      json: { ...account, displayName: 'A citizen', roles: ['User'] },
    });
    const signIn = async (json: object) => {
      const { body } = await here.api.expect(200, 'POST', '/api/auth/login', { json });
      return (body as Tokens).access_token;
    };
    platform = await signIn(account);
    consumer = await signIn({ ...account, tier: 'consumer' });
    wallet = await createWallet(here.api, platform, 'NISTP256');
  });

  test('signs a key-binding JWT with the holder key that the gateway shows', async () => {
    const { body } = await here.api.expect(200, 'GET', `${base}/holder-keys`, { token: consumer });
    const { holderJwk, walletAddress } = holderKeys.parse(body);
    expect(walletAddress).toBe(wallet.walletAddress);
    const iat = Math.floor(Date.now() / 1000);
    const signingInput = [
      { typ: 'kb+jwt', alg: 'ES256' },
      { nonce: 'n', aud: 'https://v.example', sd_hash: 'h', iat },
    ]
      .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
      .join('.');
    const json = { signingInput };
    const path = `${base}/presentations/sign-kb`;
    const signed = await here.api.expect(200, 'POST', path, { token: consumer, json });
    const { signature } = z.object({ signature: z.string() }).parse(signed.body);
    await jwtVerify(`${signingInput}.${signature}`, await importJWK(holderJwk), { typ: 'kb+jwt' });
    await here.api.expect(403, 'POST', path, { token: platform, json });
  });

  test('sets a notice, and sees and clears the history', async () => {
    const notices = `${base}/pending-applications`;
    await here.api.expect(200, 'PUT', notices, { token: consumer, json: { label: ' Parking permit ' } });
    const noticed = await here.api.expect(200, 'GET', notices, { token: consumer });
    expect(noticed.body).toMatchObject({ notice: { label: 'Parking permit' } });
    await here.api.expect(204, 'DELETE', notices, { token: consumer });
    const id = randomUUID();
    const presentedAt = new Date().toISOString();
    const json = { id, credentialId: 'c', disclosedClaims: ['name'], presentedAt, outcome: 'Presented' };
    await here.api.expect(204, 'POST', `${base}/presentations/log`, { token: consumer, json });
    const listed = () => here.api.expect(200, 'GET', `${base}/presentations`, { token: consumer });
    expect((await listed()).body).toMatchObject({ entries: [{ id, outcome: 'Presented' }] });
    await here.api.expect(204, 'DELETE', `${base}/presentations/${id}`, { token: consumer });
    expect((await listed()).body).toEqual({ entries: [] });
  });

  test('is recognised as recipient of a sealed action, whose file was never uploaded', async () => {
    const token = here.token();
    const owner = await createWallet(here.api, token, 'ED25519');
    const registerId = await createRegister(here.api, token, 'Files', owner);
    await waitOnline(here.api, token, registerId);
    const { body } = await here.api.expect(200, 'GET', `/api/wallets/${wallet.id}`, { token: platform });
    const { encryptionPublicKey } = z.object({ encryptionPublicKey: z.string() }).parse(body);
    const kid = `${wallet.walletAddress}#platform:payload-encryption`;
    const reader = { kid, publicKey: encryptionPublicKey };
    const payload = await encryptedPayload(registerId, reader, { plan: fileReference() });
    const sender = owner.walletAddress;
    const txId = await submitThroughRegister(here.api, token, { registerId, sender, payload });
    await waitConfirmed(here.api, token, registerId, txId);
    const path = (address: string, field: string) =>
      `/api/v1/wallets/${address}/files/download?registerId=${registerId}&actionTxId=${txId}&fieldName=${field}`;
    const codeOf = async (status: number, who: string, at: string) => {
      const refused = await here.api.expect(status, 'GET', at, { token: who });
      return z.object({ code: z.string() }).parse(refused.body).code;
    };
    expect(await codeOf(404, consumer, path(wallet.walletAddress, 'plan'))).toBe('FILE_NOT_FOUND');
    expect(await codeOf(404, consumer, path(wallet.walletAddress, 'other'))).toBe('FILE_NOT_FOUND');
    expect(await codeOf(403, token, path(owner.walletAddress, 'plan'))).toBe('NOT_A_RECIPIENT');
    expect(await codeOf(403, token, path(wallet.walletAddress, 'plan'))).toBe('WALLET_ACCESS_DENIED');
  });

  test('reaches no internal route of the wallet service', async () => {
    const path = `/api/internal/wallets/${wallet.walletAddress}/issuer-cert-key`;
    await here.api.expect(404, 'GET', path, { token: consumer });
  });
});
