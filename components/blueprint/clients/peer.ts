import { isAppError } from '#core/errors/errors.ts';
import type { Runtime } from '#kit/lifecycle/lifecycle.ts';
import type { Workload } from '#kit/workload/workload.ts';
import { refusal } from '../errors.ts';

/** What every client of another service needs. */
export interface PeerOptions {
  readonly runtime: Runtime;
  readonly workload: Workload;
  /** The token of this service. */
  readonly token: () => Promise<string>;
}

/** Throws the error of a call: an outage of the wallet service is not a refusal of the caller. */
export function walletsUnavailable(cause: unknown): never {
  if (isAppError(cause, 'unavailable') || isAppError(cause, 'timeout'))
    throw refusal('WALLETS_UNAVAILABLE', { cause, retryAfterSeconds: 1 });
  throw cause;
}
