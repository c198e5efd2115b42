import { AppError, isAppError } from '#core/errors/errors.ts';
import type { Logger } from '#kit/log/log.ts';
import { refusal } from '../../errors.ts';
import { type CrlEntry, makeCrl } from '../issuing/make.ts';
import { findReason } from '../issuing/reasons.ts';
import { signWith } from '../keys/organization-keys.ts';
import { type AuthorityDeps, wholeSecond } from './provision.ts';
import { findRoot, listRevoked, lockRoot, type StoredRoot, saveCrl, takeCrlNumber } from './store.ts';

const lifeMs = 24 * 3_600_000;
const renewAfterMs = lifeMs / 2;
/** Revoked certificates stay on lists for a while after they expired (RFC 5280, section 3.3). */
const keptMs = 7 * 24 * 3_600_000;

interface CrlDeps extends AuthorityDeps {
  readonly log: Logger;
}

/** Revocation lists of organisations. */
export interface CrlPublisher {
  /**
   * The list of the present root, in DER: signed again after a revocation, and when it has aged half. While the wallet
   * service cannot sign, a list that shows every revocation is served until its end, and one that does not is not served.
   * @throws TRUST_ANCHOR_NOT_FOUND, CRL_UNAVAILABLE
   */
  get(organizationId: string): Promise<Buffer>;
}

export function createCrlPublisher(deps: CrlDeps): CrlPublisher {
  /** One signature at a time for a revision, independent of the number of readers. */
  const running = new Map<string, Promise<Buffer>>();
  const signOnce = (root: StoredRoot): Promise<Buffer> => {
    const name = `${root.id} ${root.revision}`;
    const present = running.get(name);
    if (present !== undefined) return present;
    const signing = signCrl(deps, root).finally(() => running.delete(name));
    running.set(name, signing);
    return signing;
  };
  return {
    get: async (organizationId) => {
      const root = await findRoot(deps.db.read, organizationId);
      if (root === undefined) throw refusal('TRUST_ANCHOR_NOT_FOUND');
      const nowMs = deps.clock.nowMs();
      const { crl, revision } = root;
      const isComplete = crl?.revision === revision;
      if (crl !== undefined && isComplete && nowMs < crl.thisUpdateMs + renewAfterMs) return crl.bytes;
      try {
        return await signOnce(root);
      } catch (error) {
        if (!isAppError(error)) throw error;
        deps.log.warn(
          { err: error, organizationId },
          'the revocation list of an organisation was not signed',
        );
        if (crl !== undefined && isComplete && nowMs < crl.nextUpdateMs) return crl.bytes;
        throw refusal('CRL_UNAVAILABLE', { cause: error, retryAfterSeconds: 60 });
      }
    },
  };
}

/** The number is taken in a transaction of its own, so that no transaction waits for the wallet service. */
async function signCrl(deps: CrlDeps, { organizationId }: StoredRoot): Promise<Buffer> {
  const { db, clock, keys } = deps;
  const thisUpdateMs = wholeSecond(clock.nowMs());
  const { root, number, revoked } = await db.transact(async (tx) => {
    const locked = await lockRoot(tx, organizationId);
    if (locked === undefined) throw refusal('TRUST_ANCHOR_NOT_FOUND');
    return {
      root: locked,
      number: await takeCrlNumber(tx, locked.id),
      revoked: await listRevoked(tx, locked, thisUpdateMs - keptMs),
    };
  });
  const owner = { organizationId, walletAddress: root.walletAddress };
  const key = await keys.get(owner, 'root');
  if (key.thumbprint !== root.keyThumbprint)
    throw new AppError('unprocessable', 'CERT_KEY_MISMATCH', 'the key of the authority was replaced');
  const nextUpdateMs = thisUpdateMs + lifeMs;
  const bytes = await makeCrl({
    root: root.certificate,
    number,
    thisUpdateMs,
    nextUpdateMs,
    entries: revoked.map(({ reason, ...entry }): CrlEntry => ({ ...entry, reason: findReason(reason) })),
    sign: signWith(keys, owner, { key, use: 'root' }),
  });
  const { revision } = root;
  await db.transact((tx) => saveCrl(tx, root.id, { bytes, number, revision, thisUpdateMs, nextUpdateMs }));
  return bytes;
}
