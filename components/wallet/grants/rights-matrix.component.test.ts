import { randomBytes, randomUUID } from 'node:crypto';
import { create } from '@bufbuild/protobuf';
import { ed25519 } from '@noble/curves/ed25519.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isAppError } from '#core/errors/errors.ts';
import type { Caller } from '#core/identity/claims.ts';
import type { Role } from '#core/identity/roles.ts';
import { UnwrapKeysResponseSchema } from '#protos/gen/chancery/wallet/v1/wallet_pb.js';
import type { AccessRight } from '../database/schema.ts';
import { encryptionHandlers } from '../encryption/rpc.ts';
import { walletHandlers } from '../signing/rpc.ts';
import { administrator, openFixture, person, type Replica, rpcContext } from '../testing/fixture.ts';
import { createHttpClient, type HttpClient } from '../testing/http-client.ts';
import { recipientsOf, sealFor, type Wrapped } from '../testing/jwe-recipients.ts';
import { ownWallet } from '../wallets/services/own.ts';
import { insertGrant } from './store.ts';

/**
 * Every answer of a use of keys: kind of wallet, caller, grant, key and state. A cell is the answer for an active wallet
 * and for a locked one.
 *
 * Grants: right and contexts, `a` for platform:register-attestation, `p` for platform:payload-encryption.
 * Columns: signing with the primary key, with the contexts register-attestation, payload-encryption and
 * haip-issuer-signing, with a raw path; unwrapping with the key of payload-encryption and with the primary key.
 */
const MATRIX = `
wallet       | caller                  | grant        | primary   | attest    | payload | issuer  | raw       | read      | read-primary
User         | owner                   | -            | ok lock   | ok lock   | res res | res res | ok lock   | ok lock   | ok lock
User         | owner by service        | -            | ok lock   | ok lock   | res res | res res | ok lock   | ok lock   | ok lock
User         | owner by stolen token   | -            | del del   | del del   | del del | del del | del del   | del del   | del del
User         | owner without scopes    | -            | del del   | del del   | del del | del del | del del   | del del   | del del
User         | owner, sign alone       | -            | ok lock   | ok lock   | res res | res res | ok lock   | del del   | del del
User         | owner, decrypt alone    | -            | del del   | del del   | del del | del del | del del   | ok lock   | ok lock
User         | old delegated token     | -            | del del   | del del   | del del | del del | del del   | del del   | del del
User         | service                 | -            | per per   | per per   | per per | per per | per per   | per per   | per per
User         | person                  | -            | no no     | no no     | no no   | no no   | no no     | no no     | no no
User         | person                  | ReadOnly ap  | no no     | no no     | no no   | no no   | no no     | no no     | no no
User         | person                  | ReadWrite    | no no     | no no     | no no   | no no   | no no     | no no     | no no
User         | person                  | ReadWrite a  | no no     | ok lock   | no no   | no no   | no no     | no no     | no no
User         | person                  | ReadWrite p  | no no     | no no     | res res | no no   | no no     | ok lock   | no lock
User         | person                  | ReadWrite ap | no no     | ok lock   | res res | no no   | no no     | ok lock   | no lock
User         | person by service       | ReadWrite ap | no no     | ok lock   | res res | no no   | no no     | ok lock   | no lock
User         | person                  | Owner ap     | no no     | ok lock   | res res | no no   | no no     | ok lock   | no lock
User         | person                  | expired ap   | no no     | no no     | no no   | no no   | no no     | no no     | no no
User         | person                  | ended ap     | no no     | no no     | no no   | no no   | no no     | no no     | no no
Organization | administrator           | -            | no no     | no no     | no no   | no no   | no no     | no no     | no no
Organization | administrator           | ReadOnly ap  | no no     | no no     | no no   | no no   | no no     | no no     | no no
Organization | administrator           | ReadWrite a  | no no     | ok lock   | no no   | no no   | no no     | no no     | no no
Organization | administrator           | ReadWrite p  | no no     | no no     | res res | no no   | no no     | ok lock   | no lock
Organization | administrator           | ReadWrite ap | no no     | ok lock   | res res | no no   | no no     | ok lock   | no lock
Organization | administrator by service | ReadWrite ap | no no    | ok lock   | res res | no no   | no no     | ok lock   | no lock
Organization | administrator           | expired ap   | no no     | no no     | no no   | no no   | no no     | no no     | no no
Organization | administrator elsewhere | ReadWrite ap | no no     | no no     | no no   | no no   | no no     | no no     | no no
Organization | member                  | -            | no no     | no no     | no no   | no no   | no no     | no no     | no no
Organization | member                  | ReadOnly p   | no no     | no no     | no no   | no no   | no no     | no no     | no no
Organization | member                  | ReadWrite a  | no no     | no no     | no no   | no no   | no no     | no no     | no no
Organization | member                  | ReadWrite p  | no no     | no no     | no no   | no no   | no no     | ok lock   | no lock
Organization | member by service       | ReadWrite p  | no no     | no no     | no no   | no no   | no no     | ok lock   | no lock
Organization | consumer                | ReadWrite p  | no no     | no no     | no no   | no no   | no no     | ok lock   | no lock
Organization | person                  | ReadWrite ap | no no     | no no     | no no   | no no   | no no     | no no     | no no
Organization | service                 | -            | per per   | per per   | per per | per per | per per   | per per   | per per
Service      | its service             | -            | ok lock   | ok lock   | res res | res res | ok lock   | ok lock   | ok lock
Service      | owner by service        | -            | no no     | no no     | no no   | no no   | no no     | no no     | no no
Service      | other service           | -            | per per   | per per   | per per | per per | per per   | per per   | per per
Service      | person                  | -            | no no     | no no     | no no   | no no   | no no     | no no     | no no
Derived      | its user                | -            | ok lock   | ok lock   | res res | res res | ok lock   | ok lock   | ok lock
Derived      | its user by service     | -            | ok lock   | ok lock   | res res | res res | ok lock   | ok lock   | ok lock
Derived      | its user elsewhere      | -            | no no     | no no     | no no   | no no   | no no     | no no     | no no
Derived      | administrator           | -            | no no     | no no     | no no   | no no   | no no     | no no     | no no
Derived      | member                  | -            | no no     | no no     | no no   | no no   | no no     | no no     | no no
Derived      | service                 | -            | per per   | per per   | per per | per per | per per   | per per   | per per
Rotated      | its user                | -            | rot lock  | rot lock  | res res | res res | rot lock  | ok lock   | ok lock
Rotated      | its user by service     | -            | rot lock  | rot lock  | res res | res res | rot lock  | ok lock   | ok lock
Rotated      | its user elsewhere      | -            | no no     | no no     | no no   | no no   | no no     | no no     | no no
Rotated      | administrator           | -            | no no     | no no     | no no   | no no   | no no     | no no     | no no
`;

const CODES: Readonly<Record<string, string>> = {
  WALLET_ACCESS_DENIED: 'no',
  WALLET_LOCKED: 'lock',
  KEY_ROTATED: 'rot',
  DERIVATION_CONTEXT_RESERVED: 'res',
  PERSON_REQUIRED: 'per',
  DELEGATION_INVALID: 'del',
};
const CONTEXTS = { a: 'platform:register-attestation', p: 'platform:payload-encryption' } as const;
const SIGNING = ['', CONTEXTS.a, CONTEXTS.p, 'platform:haip-issuer-signing', "m/44'/0'/0'/0'/7'"] as const;
const SERVICE = 'service-blueprint';

interface Row {
  readonly kind: string;
  readonly who: string;
  readonly grant: string;
  /** by column, for an active and for a locked wallet */
  readonly cells: readonly string[];
}

const ROWS: readonly Row[] = MATRIX.trim()
  .split('\n')
  .slice(1)
  .map((line) => {
    const [kind = '', who = '', grant = '', ...cells] = line.split('|').map((cell) => cell.trim());
    return { kind, who, grant, cells };
  });

describe('the rights to use the keys of a wallet', () => {
  const organizationId = randomUUID();
  const owner = person({ organizationId: randomUUID() });
  const admin = administrator(organizationId);
  const officer = person({ organizationId, roles: ['User'] });
  const wallets = new Map<string, { readonly id: string; readonly walletAddress: string }>();
  const wrapped = new Map<string, readonly [Wrapped, Wrapped]>();
  let replica: Replica;
  let client: HttpClient;

  beforeAll(async () => {
    replica = await openFixture('wallet_matrix');
    client = createHttpClient(replica);
    client.callers.set('owner', owner).set('admin', admin);
    wallets.set('User', await client.made('owner', 'NISTP256'));
    wallets.set('Organization', await client.made('admin', 'NISTP256', { organizationId }));
    await replica.db.pool.query('UPDATE wallet_grants SET ended_at = now()');
    const own = await ownWallet(replica.deps, serviceToken(SERVICE), 'matrix');
    wallets.set('Service', { id: own.id, walletAddress: own.address });
    await deriveKeys();
    for (const [kind, { walletAddress }] of wallets) wrapped.set(kind, await wrapFor(walletAddress));
  });

  afterAll(async () => {
    await client.close();
    await replica.close();
  });

  /** A key of the organisation for the officer, and one that was rotated. */
  async function deriveKeys(): Promise<void> {
    const userId = officer.platformUserId ?? '';
    replica.members.add(`${organizationId} ${userId}`);
    const base = `/api/wallets/org/${organizationId}`;
    const derive = async (usage: string) => {
      const { body } = await client.call('admin', `POST ${base}/derive-key`, { body: { userId, usage } });
      return { id: String(body.derivedKeyId), walletAddress: String(body.walletAddress) };
    };
    wallets.set('Derived', await derive('Identity'));
    const rotated = await derive('Governance');
    await client.call('admin', `POST ${base}/keys/${rotated.id}/rotate`);
    wallets.set('Rotated', rotated);
  }

  const handlers = () => ({ ...walletHandlers(replica.deps), ...encryptionHandlers(replica.deps) });

  /** A content key for the key of payload-encryption, and for the primary key. */
  async function wrapFor(walletAddress: string): Promise<[Wrapped, Wrapped]> {
    const request = { addresses: [walletAddress] } as never;
    const { keys = [] } = await handlers().findEncryptionKeys(request, rpcContext(SERVICE));
    const row = await replica.db.read
      .selectFrom('wallets')
      .select(['public_key', 'key_type'])
      .where('address', '=', walletAddress)
      .executeTakeFirstOrThrow();
    const isEd25519 = row.key_type === 'ED25519';
    const raw = isEd25519 ? ed25519.utils.toMontgomery(row.public_key) : row.public_key;
    const primary = {
      kid: walletAddress,
      algorithm: isEd25519 ? 'X25519' : row.key_type,
      publicKey: Buffer.from(raw).toString('base64'),
    };
    const [first, second] = recipientsOf(await sealFor([...keys, primary], 'x'));
    if (first === undefined || second === undefined) throw new Error('a key is missing');
    return [first, second];
  }

  function serviceToken(clientId: string, change: Partial<Caller> = {}): Caller {
    return person({ kind: 'service', tier: 'service', clientId, platformUserId: undefined, ...change });
  }

  function delegatedToken(to: Caller, change: Partial<Caller> = {}): Caller {
    const { subject: userId, platformUserId, roles, sessionId } = to;
    return serviceToken(SERVICE, {
      scopes: ['wallets:sign', 'wallets:decrypt'],
      delegation: { userId, platformUserId, organizationId: to.organizationId, roles, sessionId },
      ...change,
    });
  }

  function personOfRow(who: string): Caller {
    const member = (roles: readonly Role[], of = organizationId) => person({ organizationId: of, roles });
    if (who.startsWith('owner')) return owner;
    if (who === 'its user elsewhere') return { ...officer, organizationId: randomUUID() };
    if (who.startsWith('its user')) return officer;
    if (who === 'administrator elsewhere') return member(['Administrator'], randomUUID());
    if (who.startsWith('administrator')) return member(['Administrator']);
    if (who.startsWith('member')) return member(['User', 'Designer', 'Auditor']);
    return who === 'consumer' ? member([]) : member(['Administrator'], randomUUID());
  }

  function tokenOfRow(who: string, caller: Caller): Caller {
    switch (who) {
      case 'service':
      case 'other service':
        return serviceToken('service-register');
      case 'its service':
        return serviceToken(SERVICE);
      case 'owner by stolen token':
        return delegatedToken(caller, { clientId: 'service-register' });
      case 'owner without scopes':
        return delegatedToken(caller, { scopes: ['registers:write'] });
      case 'owner, sign alone':
        return delegatedToken(caller, { scopes: ['wallets:sign'] });
      case 'owner, decrypt alone':
        return delegatedToken(caller, { scopes: ['wallets:decrypt'] });
      case 'old delegated token':
        return delegatedToken({ ...owner, platformUserId: undefined });
      default:
        return who.endsWith('by service') ? delegatedToken(caller) : caller;
    }
  }

  async function give(walletId: string, subject: string, grant: string): Promise<void> {
    const [right = '', letters = ''] = grant.split(' ');
    const nowMs = replica.clock.nowMs();
    const accessRight = (['expired', 'ended'].includes(right) ? 'ReadWrite' : right) as AccessRight;
    const id = randomUUID();
    await replica.db.transact((tx) =>
      insertGrant(tx, {
        id,
        walletId,
        subject,
        accessRight,
        reason: undefined,
        grantedBy: subject,
        grantedAtMs: nowMs - 10,
        expiresAtMs: right === 'expired' ? nowMs : nowMs + 1,
        ended: false,
        allowedContexts: Object.entries(CONTEXTS).flatMap(([letter, name]) =>
          letters.includes(letter) ? [name] : [],
        ),
      }),
    );
    if (right !== 'ended') return;
    await replica.db.pool.query('UPDATE wallet_grants SET ended_at = now() WHERE id = $1', [id]);
  }

  const answer = (act: Promise<string>): Promise<string> =>
    act.catch((error: unknown) => {
      if (!isAppError(error)) throw error;
      return CODES[error.code] ?? error.code;
    });

  async function sign(wallet: string, subject: Caller, derivationContext: string): Promise<string> {
    const request = { walletAddress: wallet, digest: randomBytes(32), derivationContext };
    const { signature } = await handlers().signDigest(request as never, rpcContext(SERVICE, { subject }));
    return signature?.length === 64 ? 'ok' : 'no signature';
  }

  async function unwrap(wallet: string, subject: Caller, key: Wrapped): Promise<string> {
    const request = { wallet, keys: [key] } as never;
    const response = await handlers().unwrapKeys(request, rpcContext(SERVICE, { subject }));
    const [only] = create(UnwrapKeysResponseSchema, response).keys;
    if (only?.result.case !== 'refusal') return only?.result.case === 'contentKey' ? 'ok' : 'no answer';
    return CODES[only.result.value] ?? only.result.value;
  }

  async function listed(wallet: string, subject: Caller, derivationContext: string): Promise<string> {
    const request = { derivationContext } as never;
    const { wallets: all = [] } = await handlers().listSubjectWallets(
      request,
      rpcContext(SERVICE, { subject }),
    );
    return all.some(({ walletAddress }) => walletAddress === wallet) ? 'ok' : 'not listed';
  }

  test('the keys that content is encrypted to have the state of the key', async () => {
    for (const [kind, { walletAddress }] of wallets) {
      const request = { addresses: [walletAddress] } as never;
      const { keys = [] } = await handlers().findEncryptionKeys(request, rpcContext(SERVICE));
      expect(keys, kind).toMatchObject([{ status: kind === 'Rotated' ? 'Rotated' : 'Active' }]);
    }
  });

  test.each(ROWS)('$kind, $who, $grant', async ({ kind, who, grant, cells }) => {
    const { id, walletAddress } = wallets.get(kind) ?? { id: '', walletAddress: '' };
    const caller = personOfRow(who);
    if (grant !== '-') await give(id, caller.platformUserId ?? '', grant);
    const subject = tokenOfRow(who, caller);
    const [payload, primary] = wrapped.get(kind) ?? [];
    if (payload === undefined || primary === undefined) throw new Error(`no keys for ${kind}`);
    const found: string[][] = [];
    for (const status of ['Active', 'Locked']) {
      await replica.db.pool.query('UPDATE wallets SET status = $2 WHERE id = $1', [id, status]);
      const signed = SIGNING.map((context) => answer(sign(walletAddress, subject, context)));
      const read = [payload, primary].map((key) => answer(unwrap(walletAddress, subject, key)));
      found.push(await Promise.all([...signed, ...read]));
      // The list of wallets to sign with agrees with signing.
      for (const index of [0, 1, 4]) {
        const list = await answer(listed(walletAddress, subject, SIGNING[index] ?? ''));
        const isListed = found.at(-1)?.[index] === 'ok';
        expect(list === 'ok', `listed for ${SIGNING[index]}, ${status}`).toBe(isListed);
      }
    }
    await replica.db.pool.query(`UPDATE wallets SET status = 'Active' WHERE id = $1`, [id]);
    const [active = [], locked = []] = found;
    expect(active.map((code, index) => `${code} ${locked[index]}`)).toEqual(cells);
  });
});
