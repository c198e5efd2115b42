import { randomBytes } from 'node:crypto';
import { equalSecrets } from '#core/crypto/hash.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database, Transactor } from '#kit/db/db.ts';
import type { CredentialDatabase } from '../../database/schema.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { createSecret, openUnder, sealUnder, secretHash, txCodeHash } from '../../protocol/secrets.ts';
import { type DpopProof, dpopRefusal } from '../nonces/dpop.ts';
import { useOnce } from '../nonces/store.ts';
import { mostTxCodeTries, statusAt } from '../offers/offer.ts';
import { countTxCodeTry, endOffer, type LockedOffer, lockOfferByCode } from '../offers/store.ts';
import { insertAccessToken } from './store.ts';

/** How long an access token can be used, in seconds. */
export const tokenSeconds = 300;

export interface ExchangeDeps {
  readonly db: Database<CredentialDatabase>;
  readonly clock: Clock;
}

interface ExchangeRequest {
  readonly code: string;
  readonly txCode: string | undefined;
  readonly dpop: DpopProof | undefined;
}

/**
 * Gives an access token for a pre-authorized code (OpenID4VCI 1.0, section 6). A code serves once: of requests at one time
 * the first wins. A wrong transaction code is counted, and the fifth ends the offer.
 * @throws ProtocolError invalid_grant, invalid_request, invalid_dpop_proof
 */
export async function exchangeCode({ db, clock }: ExchangeDeps, request: ExchangeRequest): Promise<string> {
  const now = new Date(clock.nowMs());
  // A refusal is returned and not thrown, because the transaction that counts a try must commit.
  const outcome = await db.transact(async (tx) => exchange(tx, request, now));
  if (typeof outcome === 'string') return outcome;
  throw outcome;
}

async function exchange(
  tx: Transactor<CredentialDatabase>,
  { code, txCode, dpop }: ExchangeRequest,
  now: Date,
): Promise<string | ProtocolError> {
  const offer = await lockOfferByCode(tx, secretHash(code));
  if (offer === undefined || offer.sealedClaims === null || statusAt(offer, now) !== 'Pending')
    return invalidGrant();
  const fault = await judgeTxCode(tx, offer, { code, txCode, now });
  if (fault !== undefined) return fault;
  if (dpop !== undefined && !(await useOnce(tx, dpop.useOnce, dpop.expiresAt)))
    return dpopRefusal('the proof was used before', false);
  const claims = openUnder(code, offer.id, offer.sealedClaims);
  if (claims === undefined) throw new Error('the claims of an offer cannot be opened with its code');
  const token = createSecret(randomBytes);
  await insertAccessToken(tx, {
    tokenHash: secretHash(token),
    offerId: offer.id,
    sealedClaims: sealUnder(token, offer.id, { plain: claims, random: randomBytes }),
    dpopThumbprint: dpop?.thumbprint ?? null,
    expiresAt: new Date(now.getTime() + tokenSeconds * 1000),
  });
  claims.fill(0);
  await endOffer(tx, offer.id, { status: 'Exchanged', reason: null, at: now });
  return token;
}

/** The same answer for unknown, expired, cancelled and used codes, so that it tells no difference. */
function invalidGrant(): ProtocolError {
  return new ProtocolError('invalid_grant', 'the code, or the transaction code, is not valid');
}

/** What is wrong with the transaction code; a wrong one is counted. */
async function judgeTxCode(
  tx: Transactor<CredentialDatabase>,
  offer: LockedOffer,
  { code, txCode, now }: { readonly code: string; readonly txCode: string | undefined; readonly now: Date },
): Promise<ProtocolError | undefined> {
  if (offer.txCodeHash === null) {
    return txCode === undefined
      ? undefined
      : new ProtocolError('invalid_request', 'the offer has no transaction code');
  }
  if (txCode === undefined) return new ProtocolError('invalid_request', 'tx_code is missing');
  if (equalSecrets(txCodeHash(code, txCode), offer.txCodeHash)) return undefined;
  const tries = await countTxCodeTry(tx, offer.id);
  if (tries >= mostTxCodeTries)
    await endOffer(tx, offer.id, { status: 'Expired', reason: 'tx_code', at: now });
  return invalidGrant();
}
