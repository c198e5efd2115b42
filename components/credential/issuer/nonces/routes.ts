import { z } from 'zod';
import type { Clock } from '#kit/clock/clock.ts';
import { type App, addRoute, answer, json } from '#kit/http/http.ts';
import type { Logger } from '#kit/log/log.ts';
import { walletRoute } from '../../protocol/route.ts';
import { type Nonces, nonceSeconds } from './nonces.ts';

export interface NonceRouteDeps {
  readonly nonces: Nonces;
  readonly clock: Clock;
  readonly log: Logger;
}

const nonceSchema = z.object({
  c_nonce: z.string().describe(`Serves one request for credentials, within ${nonceSeconds} s.`),
});

/** Mounts the nonce endpoint (OpenID4VCI 1.0, section 7). */
export function mountNonceRoutes(app: App, deps: NonceRouteDeps): void {
  addRoute(app, {
    ...walletRoute(() => deps.log),
    method: 'POST',
    path: '/nonce',
    operationId: 'createNonce',
    tag: 'Credential exchange',
    summary: 'A nonce for proofs of possession',
    policy: 'Anonymous',
    answers: {
      200: json('The nonce.', nonceSchema, { 'dpop-nonce': 'A nonce for DPoP proofs (RFC 9449).' }),
    },
    handle: () => {
      const nowMs = deps.clock.nowMs();
      return answer(
        200,
        { c_nonce: deps.nonces.create('c_nonce', nowMs) },
        { 'dpop-nonce': deps.nonces.create('dpop', nowMs) },
      );
    },
  });
}
