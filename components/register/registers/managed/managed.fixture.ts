import { randomUUID } from 'node:crypto';
import { encodeBase64 } from '#core/encoding/base64.ts';
import { manualClock } from '#kit/clock/clock.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { type TestKey, testKey } from '../../testing/keys.ts';
import { organizationId, startTestRegister } from '../../testing/register.ts';

/** The wallets of the operator, of a person who signs in as `user`, and of an administrator. */
export const operatorKey = testKey(30);
export const personKey = testKey(31);
export const adminKey = testKey(32);
/** Four members; validator-4 has announced itself too, validator-5 has not. */
export const set = ['validator-0', 'validator-1', 'validator-2', 'validator-3'];
export const startMs = Date.UTC(2026, 10, 22, 12);
export const hourMs = 3_600_000;

interface RequestedAttestation {
  readonly walletAddress: string;
  readonly role: string;
  readonly dataToSign: string;
}

/** A signed attestation. */
export function attest({ walletAddress, role, dataToSign }: RequestedAttestation, key: TestKey) {
  const signature = encodeBase64(key.signer.signDigest(Buffer.from(dataToSign, 'hex')));
  return { walletAddress, role, publicKey: key.publicKey, algorithm: key.algorithm, signature };
}

/** A register service whose operator has a wallet, with the operator's calls. */
export async function startManaged(name: string) {
  const clock = manualClock(startMs);
  const register = await startTestRegister(name, { members: 4, spare: 2, clock });
  register.wallets.own('operator', operatorKey);
  register.wallets.own('user', personKey);
  const announce = async () => {
    for (const member of register.validators.members.slice(0, 5)) await register.introduce(member);
  };
  await announce();
  const token = 'operator';
  const spec = (over: object = {}) => ({ title: 'Loans', organizationId, validators: set, ...over });
  const put = (uid: string, over: object = {}, as = token) =>
    register.call('PUT', `/api/internal/registers/${uid}`, { token: as, body: spec(over) });
  const sealed = async (registerId: string) => {
    await waitFor(() => register.validators.pooled(registerId).length > 0, { what: 'something to seal' });
    await register.seal(registerId);
  };
  return {
    register,
    clock,
    spec,
    put,
    sealed,
    /** Announces all validators now. */
    announce,
    get: (key: string, as = token) => register.call('GET', `/api/internal/registers/${key}`, { token: as }),
    change: (key: string, body: object, headers = {}) =>
      register.call('POST', `/api/internal/registers/${key}/changes`, { token, body, headers }),
    remove: (key: string, policy: string, as = token) =>
      register.call('DELETE', `/api/internal/registers/${key}?policy=${policy}`, { token: as }),
    lead: (key: string, state: string) =>
      register.call('PUT', `/api/internal/registers/${key}/validation`, { token, body: { state } }),
    async count() {
      const { rows } = await register.database.pool.query('select count(*) from registers');
      return Number(rows[0].count);
    },
    /** A register with docket 0. */
    async online(over: object = {}): Promise<{ readonly uid: string; readonly registerId: string }> {
      const uid = randomUUID();
      const made = await put(uid, over);
      if (made.status !== 200) throw new Error(made.text);
      await sealed(made.body.registerId);
      return { uid, registerId: made.body.registerId };
    },
  };
}

export type Managed = Awaited<ReturnType<typeof startManaged>>;
