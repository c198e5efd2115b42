import { z } from 'zod';
import type { Answer, Api } from './api.ts';

const masterKey = z.object({
  orgId: z.string(),
  mnemonic: z.string().optional(),
  walletAddress: z.string(),
  message: z.string(),
});
const derivedKey = z.object({
  derivedKeyId: z.string(),
  walletAddress: z.string(),
  publicKey: z.string(),
  derivationPath: z.string(),
  usage: z.string(),
  status: z.string(),
});
const rotation = z.object({
  newDerivedKeyId: z.string(),
  previousKeyId: z.string(),
  previousKeyStatus: z.literal('Rotated'),
  walletAddress: z.string(),
  publicKey: z.string(),
});
const revocation = z.object({
  derivedKeyId: z.string(),
  status: z.literal('Revoked'),
  revokedAt: z.string(),
});
const members = z.object({ items: z.array(z.object({ id: z.string(), email: z.string() })) });

type Body = Readonly<Record<string, unknown>>;

/** The keys of one organisation, as its administrator manages them through the gateway. */
export interface OrganizationKeys {
  makeMaster(json?: Body, key?: string): Promise<z.output<typeof masterKey>>;
  /** The id of a member by the e-mail address. */
  memberId(email: string): Promise<string>;
  derive(json: Body): Promise<z.output<typeof derivedKey>>;
  rotate(derivedKeyId: string, key?: string): Promise<z.output<typeof rotation>>;
  revoke(derivedKeyId: string): Promise<z.output<typeof revocation>>;
  /** Any answer of a request below `/api/wallets/org/{orgId}`. */
  send(method: string, path: string, json?: Body): Promise<Answer>;
}

export function organizationKeys(api: Api, token: string, organizationId: string): OrganizationKeys {
  const base = `/api/wallets/org/${organizationId}`;
  const once = (key: string | undefined) =>
    key === undefined ? {} : { headers: { 'idempotency-key': key } };
  return {
    makeMaster: async (json = {}, key) => {
      const call = { token, json, ...once(key) };
      return masterKey.parse((await api.expect(201, 'POST', `${base}/master-key`, call)).body);
    },
    memberId: async (email) => {
      const path = `/api/organizations/${organizationId}/users`;
      const { items } = members.parse((await api.expect(200, 'GET', path, { token })).body);
      const found = items.find((member) => member.email === email);
      if (found === undefined) throw new Error(`${email} is no member`);
      return found.id;
    },
    derive: async (json) =>
      derivedKey.parse((await api.expect([200, 201], 'POST', `${base}/derive-key`, { token, json })).body),
    rotate: async (id, key) => {
      const call = { token, ...once(key) };
      return rotation.parse((await api.expect(200, 'POST', `${base}/keys/${id}/rotate`, call)).body);
    },
    revoke: async (id) =>
      revocation.parse((await api.expect(200, 'DELETE', `${base}/keys/${id}`, { token })).body),
    send: (method, path, json) =>
      api.send(method, `${base}${path}`, json === undefined ? { token } : { token, json }),
  };
}

const encrypted = z.object({ encryptedData: z.string() });
const opened = z.object({ data: z.string() });

/** A person's use of one wallet through the gateway. */
export function walletUse(api: Api, token: string, wallet: string) {
  const path = `/api/wallets/${wallet}`;
  return {
    sign: (text: string) =>
      api.send('POST', `${path}/sign`, {
        token,
        json: { data: Buffer.from(text).toString('base64'), algorithm: 'ED25519' },
      }),
    seal: async (data: string): Promise<string> => {
      const json = { data, recipientWalletId: wallet };
      const answer = await api.expect(200, 'POST', `${path}/encrypt`, { token, json });
      return encrypted.parse(answer.body).encryptedData;
    },
    open: async (encryptedData: string): Promise<string> => {
      const answer = await api.expect(200, 'POST', `${path}/decrypt`, { token, json: { encryptedData } });
      return opened.parse(answer.body).data;
    },
    set: (status: 'Active' | 'Locked') => api.expect(200, 'PATCH', path, { token, json: { status } }),
    remove: () => api.send('DELETE', path, { token }),
  };
}

const refused = z.object({ code: z.string() });

/** The code of a refusal with a status. */
export function codeOf(answer: Answer, status: number): string {
  if (answer.status !== status) throw new Error(`answered ${answer.status}, expected ${status}`);
  return refused.parse(answer.body).code;
}
