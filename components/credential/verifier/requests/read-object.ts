import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import type { CredentialDatabase } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import type { Verifiers } from '../identity/identity.ts';
import { requestObject } from './request-object.ts';
import { findRequest } from './store.ts';

const retryAfterSeconds = 5;

export interface ReadObjectDeps {
  readonly db: Pick<Database<CredentialDatabase>, 'read'>;
  readonly clock: Clock;
  readonly verifiers: Verifiers;
  readonly issuerUrl: string;
}

/**
 * The signed object of a request that waits for its answer.
 * @param id a UUID
 * @throws AppError not_found REQUEST_NOT_FOUND, gone REQUEST_ENDED, unavailable VERIFIER_CERTIFICATE_CHANGING
 */
export async function readRequestObject(
  { db, clock, verifiers, issuerUrl }: ReadObjectDeps,
  id: string,
  walletNonce: string | undefined,
): Promise<string> {
  const request = await findRequest(db.read, id);
  if (request === undefined) throw refusal('REQUEST_NOT_FOUND');
  const isOpen = request.status === 'Pending' && request.expiresAt.getTime() > clock.nowMs();
  if (!isOpen) throw refusal('REQUEST_ENDED');
  const verifier = verifiers.find(request.clientId);
  // A wallet refuses a request whose client id is not the hash of the certificate that signed it.
  if (verifier === undefined) throw refusal('VERIFIER_CERTIFICATE_CHANGING', { retryAfterSeconds });
  return requestObject(request, { verifier, issuerUrl, walletNonce });
}
